"""The definitions of ops in a file."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

from .. import _minitensor, plugins
from .._minitensor import CustomOp, _register_ops, _unregister_ops, describe
from .error import FileError
from .recording import Call

__all__ = ["Carried", "Missing", "collect", "register"]

_NAME = re.compile(r"[A-Za-z_]\w*(?:::\w+)*")
_LOCK = threading.RLock()


class Missing(NamedTuple):
    """An op that a file cannot contain."""

    name: str
    signature: str
    #: The plugin of the op, and its version.
    plugin: str | None
    version: str | None
    #: Why the file cannot contain it.
    reason: str

    def __str__(self) -> str:
        if self.plugin is None:
            source = "it was defined in Python; run its definition before loading"
        else:
            source = f"install plugin '{self.plugin}' {self.version}, for example with pip, or load it with mt.plugins.load_plugin"
        return f"op '{self.name}' is not registered, and the file does not contain it, because {self.reason}; {source}"


class Carried(NamedTuple):
    """The ops of a file that are not built in."""

    #: The definitions, as JSON.
    definitions: list[str]
    missing: list[Missing]


def collect(calls: Iterable[Call]) -> Carried:
    """Returns the definitions of the called ops, and of those that their gradients call."""
    called: dict[str, list[tuple[dict[str, Any], list[bool]]]] = {}
    for call in calls:
        called.setdefault(call.op, []).append((call.attrs, call.given))
    definitions: dict[str, str] = {}
    missing: list[Missing] = []
    waiting = list(called)
    while waiting:
        name = waiting.pop(0)
        try:
            definitions[name] = _minitensor._op_to_json(name, called.get(name, []))
        except ValueError as error:
            missing.append(_missing(name, str(error)))
            continue
        for formula in _formulas(json.loads(definitions[name])):
            # The formula may name other ops of plugins.
            others = {n for n in _NAME.findall(formula) if _minitensor._is_built_in(n) is False}
            waiting += sorted(others - definitions.keys() - set(waiting) - {m.name for m in missing})
    return Carried([definitions[name] for name in sorted(definitions)], sorted(missing))


def _formulas(definition: dict[str, Any]) -> list[str]:
    gradient = definition["gradient"]
    match gradient["kind"]:
        case "formula":
            return [gradient["formula"]]
        case "op":
            return _formulas(gradient["op"])
    return []


def _missing(name: str, reason: str) -> Missing:
    about = describe(name)
    plugin = about["plugin"]
    version = str(plugins.get_plugin_info(plugin).version) if plugin in _loaded_plugins() else None
    return Missing(name, about["signature"], plugin, version, reason)


def _loaded_plugins() -> list[str]:
    return [info.name for info in plugins.list_plugins()]


class Registered(NamedTuple):
    """Ops that were registered for a file."""

    ops: list[CustomOp]

    def undo(self) -> None:
        """Unregisters them."""
        _unregister_ops(self.ops)


def register(path: object, definitions: list[str]) -> Registered:
    """Registers those ops that are not registered yet: all, or none.

    Raises FileError if a definition is malformed, or differs from that of a registered op of the same name.
    """
    with _LOCK:
        new: dict[str, CustomOp] = {}
        for definition in definitions:
            try:
                op = _minitensor._op_from_json(definition)
            except Exception as error:
                name = json.loads(definition).get("name") if definition.startswith("{") else None
                raise FileError(f"'{path}': the definition of op '{str(name)[:80]}' is malformed: {error}") from None
            if op.name in new:
                raise FileError(f"'{path}': two ops have the name '{op.name}'; the file is damaged, save it again")
            if _minitensor._op_identity(op.name) is None:
                new[op.name] = op
            else:
                _expect_equal(path, op.name, definition)
        ops = list(new.values())
        try:
            _register_ops(ops)
        except ValueError as error:
            raise FileError(f"'{path}': {error}") from None
        return Registered(ops)


def _expect_equal(path: object, name: str, definition: str) -> None:
    """Raises FileError unless the registered op of this name has the same definition."""
    try:
        own = _minitensor._op_to_json_like(name, definition)
        differing = _difference(json.loads(own), json.loads(definition))
    except ValueError as error:
        differing = str(error)
    if differing:
        about = describe(name)
        owner = f"plugin '{about['plugin']}'" if about["plugin"] else about["location"]
        raise FileError(
            f"'{path}': its op '{name}' is not the registered op '{name}' of {owner}: {differing}; unregister that op with "
            f"mt.unregister_custom_op_py('{name}') before loading, or rename one of them"
        )


def _difference(own: dict[str, Any], other: dict[str, Any]) -> str | None:
    """Returns the part of a definition that differs, if one does. Documentation does not count."""
    for part in own:
        if part != "doc" and own[part] != other.get(part):
            return f"their {part} differ"
    return None
