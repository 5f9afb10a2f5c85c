"""The Python state that a function refers to: its closure, its globals, and the objects that these contain.

A graph contains the values that this state had when the graph was recorded. If they change, it is recorded again.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from .._minitensor import Tensor
from ..nn import Module
from ..optim import Optimizer
from .tree import PLAIN

#: Attributes that runs of a graph read themselves.
_OF_RUNS = {Module: {"_pre_hooks", "_hooks"}, Optimizer: {"lr", "steps", "_updates", "state"}}
#: The deepest attribute that is watched.
_DEPTH = 4


class Watched:
    """The base class of objects that say themselves what a graph depends on."""

    def watched(self) -> dict[str, Any]:
        """Returns the state that a graph contains as constants."""
        raise NotImplementedError


#: A place where a value is found: a description, and a function that reads the value.
Place = tuple[str, Callable[[], Any]]


def _code_names(code: types.CodeType) -> Iterator[str]:
    """Yields the names of globals and attributes in a function and the functions that it contains."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code_names(constant)


def _is_ours(name: str | None) -> bool:
    return name is not None and (name == "minitensor" or name.startswith("minitensor."))


def _parts(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yields the values to which a value refers, with descriptions."""
    if isinstance(value, Watched):
        yield from ((f"{name}.{key}", item) for key, item in value.watched().items())
    elif isinstance(value, types.MethodType):
        yield "self", value.__self__
        yield name, value.__func__
    elif isinstance(value, types.FunctionType):
        if _is_ours(value.__module__):
            return
        yield from zip(value.__code__.co_freevars, _contents(value), strict=True)
        scope = value.__globals__
        yield from ((part, scope[part]) for part in dict.fromkeys(_code_names(value.__code__)) if part in scope)
        for i, default in enumerate(value.__defaults__ or ()):
            yield f"default {i} of {name}", default
    elif isinstance(value, (list, tuple)):
        yield from ((f"{name}[{i}]", item) for i, item in enumerate(value))
    elif isinstance(value, dict):
        yield from ((f"{name}[{key!r}]", item) for key, item in value.items())
    elif not isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType)) and hasattr(value, "__dict__"):
        skipped = next((names for kind, names in _OF_RUNS.items() if isinstance(value, kind)), set())
        yield from ((f"{name}.{key}", item) for key, item in vars(value).items() if key not in skipped)


def _contents(function: types.FunctionType) -> list[Any]:
    contents = []
    for cell in function.__closure__ or ():
        try:
            contents.append(cell.cell_contents)
        except ValueError:
            contents.append(None)
    return contents


def state(function: Callable[..., Any], arguments: list[Any]) -> dict[str, Hashable]:
    """Returns a description of all values that a function refers to, by place."""
    found: dict[str, Hashable] = {}
    seen: set[int] = set()
    waiting: list[tuple[str, Any, int]] = [("the function", function, 0)]
    waiting += [(f"argument {i}", value, 0) for i, value in enumerate(arguments)]
    while waiting:
        name, value, depth = waiting.pop()
        if type(value) in PLAIN:
            found[name] = (type(value), repr(value))
            continue
        if isinstance(value, Tensor):
            found[name] = id(value)
            continue
        if id(value) in seen:
            continue
        seen.add(id(value))
        found[name] = (type(value), id(value), len(value) if isinstance(value, (list, dict, tuple)) else 0)
        if depth < _DEPTH or isinstance(value, Module):
            deeper = depth + (not isinstance(value, Module))
            waiting += [(part, item, deeper) for part, item in _parts(value, name)]
    return found
