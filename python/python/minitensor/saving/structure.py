"""Arguments and results of a model as JSON: lists, tuples, dicts, plain values, and tensors by their position.

| JSON | value |
|---|---|
| `{"tensor": 0}` | the first tensor |
| `{"tuple": […]}`, `{"list": […]}` | a tuple, also a named one; a list |
| `{"dict": [[key, value], …]}` | a dict with strings and integers as keys |
| `{"value": 1}` | None, a bool, an int, a float or a string |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._minitensor import Tensor
from .error import FileError

__all__ = ["check", "described", "matches", "rebuilt", "written"]

_PLAIN = (bool, int, float, str, type(None))
_MAX_DEPTH = 32


def written(value: Any, tensors: list[Tensor], what: str) -> dict[str, Any]:
    """Returns the structure of a value, and appends its tensors to `tensors`."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, tuple):
        return {"tuple": [written(item, tensors, what) for item in value]}
    if type(value) is list:
        return {"list": [written(item, tensors, what) for item in value]}
    if type(value) is dict and all(type(key) in (str, int) for key in value):
        return {"dict": [[key, written(item, tensors, what)] for key, item in value.items()]}
    if type(value) in _PLAIN and not (type(value) is float and not math.isfinite(value)):
        return {"value": value}
    raise TypeError(
        f"mt.save: {what} contains a value of type {type(value).__name__}; use tensors, finite numbers, strings, "
        "None, and "
        "lists, tuples and dicts of them"
    )


def matches(structure: dict[str, Any], value: Any, tensors: list[Any]) -> bool:
    """Whether a value has the structure. Appends its tensors."""
    ((kind, part),) = structure.items()
    match kind:
        case "tensor":
            if isinstance(value, Tensor):
                tensors.append(value)
            return isinstance(value, Tensor)
        case "value":
            return type(value) is type(part) and bool(value == part)
        case "dict":
            return (
                type(value) is dict
                and list(value) == [key for key, _ in part]
                and all(matches(item, value[key], tensors) for key, item in part)
            )
    is_kind = isinstance(value, tuple) if kind == "tuple" else type(value) is list
    return (
        is_kind
        and len(value) == len(part)
        and all(matches(inner, item, tensors) for inner, item in zip(part, value, strict=True))
    )


def rebuilt(structure: dict[str, Any], tensors: Sequence[Any]) -> Any:
    """Returns the value with this structure and these tensors."""
    ((kind, part),) = structure.items()
    match kind:
        case "tensor":
            return tensors[part]
        case "value":
            return part
        case "dict":
            return {key: rebuilt(item, tensors) for key, item in part}
    items = [rebuilt(item, tensors) for item in part]
    return tuple(items) if kind == "tuple" else items


def described(structure: dict[str, Any], tensors: Sequence[str]) -> str:
    """Returns the structure as a text, with a text for each tensor."""
    ((kind, part),) = structure.items()
    match kind:
        case "tensor":
            text: str = tensors[part]
            return text
        case "value":
            return repr(part)
        case "dict":
            return "{" + ", ".join(f"{key!r}: {described(item, tensors)}" for key, item in part) + "}"
    items = ", ".join(described(item, tensors) for item in part)
    return f"[{items}]" if kind == "list" else f"({items}{',' if len(part) == 1 else ''})"


def check(path: object, where: str, structure: Any, count: int) -> None:
    """Raises FileError unless it is a structure that has each of `count` tensors once."""
    found: list[int] = []
    _check(path, where, structure, found, 0)
    if sorted(found) != list(range(count)):
        raise FileError(f"'{path}': {where} must have each of {count} tensors once, got {found[:20]}")


def _check(path: object, where: str, structure: Any, found: list[int], depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise FileError(f"'{path}': {where} is nested too deeply")
    match structure:
        case {"tensor": int(position), **rest} if not rest and type(position) is int:
            found.append(position)
        case {"value": value, **rest} if not rest and type(value) in _PLAIN:
            pass
        case {"tuple": list(items), **rest} | {"list": list(items), **rest} if not rest:
            for item in items:
                _check(path, where, item, found, depth + 1)
        case {"dict": list(items), **rest} if not rest:
            keys = []
            for item in items:
                if type(item) is not list or len(item) != 2 or type(item[0]) not in (str, int):
                    raise FileError(f"'{path}': {where} has an item of a dict that is not a key and a value")
                keys.append(item[0])
                _check(path, where, item[1], found, depth + 1)
            if len(set(keys)) != len(keys):
                raise FileError(f"'{path}': {where} has a dict with two equal keys")
        case _:
            raise FileError(f"'{path}': {where} has a part that is no tensor, tuple, list, dict or value")
