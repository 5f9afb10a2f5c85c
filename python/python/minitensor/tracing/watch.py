"""The Python state that a function refers to: its closure, its globals, and the objects that these contain.

A graph contains the values that this state had when the graph was recorded. If they change, it is recorded again.
"""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._minitensor import Tensor, _Guard
from ..nn import Module
from ..optim import Optimizer
from .tree import PLAIN

#: Attributes that runs of a graph read themselves.
_OF_RUNS = ((Optimizer, {"_lr", "_steps", "_updates"}),)
#: The deepest attribute of a variable that is watched. Modules may be nested to any depth.
_DEPTH = 4
#: Objects without state that a graph depends on.
_STATELESS = (types.ModuleType, types.BuiltinFunctionType)


class Watched:
    """The base class of objects that say themselves what a graph depends on."""

    def watched(self) -> dict[str, Any]:
        """Returns the state that a graph contains as constants."""
        raise NotImplementedError


class _Same:
    """A tensor that is equal to itself only. It is not kept."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = weakref.ref(tensor)

    def __eq__(self, other: object) -> bool:
        tensor = self._tensor()
        return isinstance(other, _Same) and tensor is not None and tensor is other._tensor()

    __hash__ = None  # type: ignore[assignment]


class State:
    """The state of a function at one time. Two states are equal if a graph of the function is valid in both."""

    def __init__(self, function: Callable[..., Any], arguments: list[Any]) -> None:
        #: Descriptions of all values, by names for messages. Several values may have one name.
        self.values: dict[str, list[Any]] = {}
        #: The tensors that the function may read.
        self.tensors: list[weakref.ref[Tensor]] = []
        #: The objects of this state, which may be equal to others. Another state may also be equal to this one.
        self.guard = _Guard()
        seen: set[int] = set()
        waiting: list[tuple[str, Any, int]] = [("the function", function, 0)]
        waiting += [(f"argument {i}", value, 0) for i, value in enumerate(arguments)]
        while waiting:
            name, value, depth = waiting.pop()
            if type(value) in PLAIN:
                # As a text: 1 equals True, -0.0 equals 0.0, and NaN does not equal itself.
                self._describe(name, (type(value), repr(value)))
            elif isinstance(value, Tensor):
                self._describe(name, _Same(value))
                self.tensors.append(weakref.ref(value))
            elif isinstance(value, _STATELESS):
                self._describe(name, id(value))
            elif id(value) not in seen:
                seen.add(id(value))
                self._describe(name, (type(value), id(value)))
                if depth <= _DEPTH or isinstance(value, Module):
                    deeper = depth + (not isinstance(value, Module))
                    waiting += [(part, item, deeper) for part, item in self._parts(value, name)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.values == other.values

    __hash__ = None  # type: ignore[assignment]

    def _describe(self, name: str, description: Any) -> None:
        self.values.setdefault(name, []).append(description)

    def _note(self, container: Any, key: Any, value: Any) -> None:
        if isinstance(value, types.ModuleType):
            return
        if type(container) is types.CellType:
            self.guard.add_cell(container, value)
        else:
            self.guard.add(container, key, value)

    def _parts(self, value: Any, name: str) -> Iterator[tuple[str, Any]]:
        """Yields the values to which a value refers, with their names, and notes their places."""
        if isinstance(value, Watched):
            yield from ((f"{name}.{key}", item) for key, item in value.watched().items())
        elif isinstance(value, types.MethodType):
            yield "self", value.__self__
            yield name, value.__func__
        elif isinstance(value, types.FunctionType):
            if _is_of_user(value.__module__):
                yield from self._of_function(value)
        elif isinstance(value, type):
            yield from self._of_class(value, name)
        elif isinstance(value, functools.partial):
            yield from ((f"{name}.{key}", getattr(value, key)) for key in ("func", "args", "keywords"))
        elif isinstance(value, (set, frozenset)):
            self.guard.add_set(value, frozenset(value))
            yield f"the elements of {name}", repr(sorted(map(repr, value)))
        elif isinstance(value, (list, dict)):
            self.guard.add_size(value)
            self._describe(f"len({name})", len(value))
            for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
                self._note(value, key, item)
                yield f"{name}[{key!r}]", item
        elif isinstance(value, tuple):
            yield from ((f"{name}[{i}]", item) for i, item in enumerate(value))
        elif hasattr(value, "__dict__"):
            yield from self._of_class(type(value), name)
            skipped = next((names for kind, names in _OF_RUNS if isinstance(value, kind)), set())
            # An attribute that is set for the first time hides that of the class.
            self.guard.add_size(vars(value))
            for key, item in list(vars(value).items()):
                if key not in skipped:
                    self._note(vars(value), key, item)
                    yield f"{name}.{key}", item

    def _of_class(self, kind: type, name: str) -> Iterator[tuple[str, Any]]:
        for base in kind.__mro__:
            if _is_of_user(base.__module__):
                self.guard.add_size(vars(base))
                for key, item in list(vars(base).items()):
                    if not key.startswith("__") or isinstance(item, types.FunctionType):
                        self._note(vars(base), key, item)
                        yield f"{name}.{key}", item

    def _of_module(self, module: types.ModuleType, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
        for name in names if _is_of_user(module.__name__) else ():
            item = vars(module).get(name)
            if type(item) in PLAIN or isinstance(item, Tensor):
                self._note(vars(module), name, item)
                yield f"{module.__name__}.{name}", item

    def _of_function(self, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
        names = dict.fromkeys(_names(function.__code__))
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        scope = function.__globals__
        found: list[tuple[str, Any, Any]] = [(name, cell, _content(cell)) for name, cell in cells]
        found += [(name, scope, scope[name]) for name in names if name in scope]
        for name, container, item in found:
            self._note(container, name, item)
            yield name, item
            if isinstance(item, types.ModuleType):
                yield from self._of_module(item, names)
        for i, default in enumerate(function.__defaults__ or ()):
            yield f"default {i} of {function.__name__}", default
        if function.__kwdefaults__:
            yield f"defaults of {function.__name__}", function.__kwdefaults__


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _names(code: types.CodeType) -> Iterator[str]:
    """Yields the names of globals and attributes in a function and the functions that it contains."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _is_of_user(module: str | None) -> bool:
    """Whether code of this module may have state that a graph depends on: not that of Python and of this package."""
    name = (module or "").split(".")[0]
    return name != "minitensor" and name not in sys.stdlib_module_names
