"""The definitions of ops in a file."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn

from .. import _minitensor, plugins
from .._minitensor import CustomOp, _register_ops, _unregister_ops, describe
from .error import FileError
from .recording import Call

__all__ = ["Carried", "Missing", "collect", "register"]

_NAME = re.compile(r"[A-Za-z_]\w*(?:::\w+)*")
_LOCK = threading.RLock()
#: The parts of a definition with the dtypes of its variables.
_DTYPES = ("dtypes", "dtypes_of_u", "dtypes_of_v", "dtypes_of_w")


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
            source = f"install plugin '{self.plugin}' {self.version}, or load its file with mt.plugins.load_plugin"
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
        case "formula" | "jvp":
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
    #: Ops with fewer programs, which these replace.
    replaced: list[CustomOp]
    #: What was known of them.
    before: dict[str, tuple[CustomOp, dict[str, Any]]]

    def undo(self) -> None:
        """Restores the state before."""
        with _LOCK:
            _unregister_ops(self.ops)
            _register_ops(self.replaced)
            for op in self.ops:
                del _LOADED[op.name]
            _LOADED.update(self.before)


#: The ops that were loaded from files, by name, with their definitions.
_LOADED: dict[str, tuple[CustomOp, dict[str, Any]]] = {}


def register(path: object, definitions: list[str]) -> Registered:
    """Registers those ops that are not registered yet: all, or none.

    Raises FileError if a definition is malformed, or differs from that of a registered op of the same name. If that op
    was loaded from another file, it gets the programs of both.
    """
    with _LOCK:
        new: dict[str, tuple[CustomOp, dict[str, Any]]] = {}
        replaced: list[CustomOp] = []
        seen: set[str] = set()
        for definition in definitions:
            op, data = _built(path, json.loads(definition))
            if op.name in seen:
                raise FileError(f"'{path}': two ops have the name '{op.name}'; the file is damaged, save it again")
            seen.add(op.name)
            loaded, own = _LOADED.get(op.name, (None, {}))
            if _minitensor._op_identity(op.name) is None:
                new[op.name] = op, data
            elif loaded is None or not loaded.is_registered:
                _expect_equal(path, op.name, data)
            elif (merged := _merged(own, data)) is None:
                _refuse(path, op.name, "the definitions in their files differ")
            elif merged != own:
                new[op.name] = _built(path, merged)
                replaced.append(loaded)
        ops = [op for op, _ in new.values()]
        _unregister_ops(replaced)
        try:
            _register_ops(ops)
        except BaseException as error:
            _register_ops(replaced)
            raise FileError(f"'{path}': {error}") from None
        before = {name: _LOADED[name] for name in new if name in _LOADED}
        _LOADED.update(new)
        return Registered(ops, replaced, before)


def _built(path: object, definition: Any) -> tuple[CustomOp, dict[str, Any]]:
    """Returns the op of a definition, and the definition as this version writes it."""
    try:
        text = json.dumps(definition)
        return _minitensor._op_from_json(text), json.loads(_minitensor._op_json_rewritten(text))
    except Exception as error:
        name = definition.get("name") if isinstance(definition, dict) else None
        raise FileError(f"'{path}': the definition of op '{str(name)[:80]}' is malformed: {error}") from None


def _merged(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any] | None:
    """Returns a definition with the programs of both; None if anything else differs."""
    varying = {"doc", *_DTYPES, "programs", "gradient"}
    if any(a[part] != b[part] for part in a.keys() - varying) or a["gradient"]["kind"] != b["gradient"]["kind"]:
        return None
    gradient = a["gradient"]
    if gradient["kind"] == "op":
        derivative = _merged(gradient["op"], b["gradient"]["op"])
        if derivative is None or gradient["wrt"] != b["gradient"]["wrt"]:
            return None
        gradient = gradient | {"op": derivative}
    elif gradient != b["gradient"]:
        return None
    programs = list(a["programs"])
    for program in b["programs"]:
        same = [p for p in programs if (p["attributes"], p["given"]) == (program["attributes"], program["given"])]
        if not same:
            programs.append(program)
        elif same != [program]:
            return None
    # Older versions wrote fewer dtypes.
    dtypes = {part: [*a[part], *(d for d in b.get(part) or [] if d not in a[part])] for part in _DTYPES if a.get(part)}
    return a | dtypes | {"gradient": gradient, "programs": programs}


def _expect_equal(path: object, name: str, definition: dict[str, Any]) -> None:
    """Raises FileError unless the registered op of this name has the same definition, and all dtypes of it."""
    try:
        own = _minitensor._op_to_json_like(name, json.dumps(definition))
        differing = _difference(json.loads(own), definition)
    except ValueError as error:
        differing = str(error)
    if differing:
        _refuse(path, name, differing)


def _refuse(path: object, name: str, differing: str) -> NoReturn:
    about = describe(name)
    owner = f"plugin '{about['plugin']}'" if about["plugin"] else about["location"]
    raise FileError(
        f"'{path}': its op '{name}' is not the registered op '{name}' of {owner}: {differing}; unregister that op with "
        f"mt.unregister_custom_op_py('{name}') before loading, or rename one of them"
    )


def _difference(own: dict[str, Any], other: dict[str, Any]) -> str | None:
    """Returns the part of a definition that differs, if one does. Documentation does not count."""
    for part in [part for part in own if part not in {"doc", *_DTYPES, "gradient"}]:
        if own[part] != other[part]:
            return f"their {part} differ"
    if any(not set(own.get(part) or []) >= set(other.get(part) or []) for part in _DTYPES):
        return "their dtypes differ"
    gradients = own["gradient"], other["gradient"]
    if [gradient["kind"] for gradient in gradients] == ["op", "op"] and gradients[0]["wrt"] == gradients[1]["wrt"]:
        return _difference(gradients[0]["op"], gradients[1]["op"])
    return None if gradients[0] == gradients[1] else "their gradients differ"
