"""Nested containers: flattened to a list of tensors, and rebuilt from one."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from .._minitensor import Device, DType, Tensor

#: Values that are equal if their types and texts are.
PLAIN = (bool, int, float, complex, str, bytes, slice, range, type(None))
#: Other values that a function may return: they do not change.
FIXED = (*PLAIN, type, types.EllipsisType, DType, Device, enum.Enum)

Rebuild = Callable[[Iterator[Any]], Any]


class Same:
    """An object that is equal to itself only. It is kept, so that no other object gets its identity."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def flatten(value: Any, tensors: list[Tensor], key: list[Hashable], function: str = "mt.jit") -> None:
    """Appends the tensors in a value to `tensors`, and everything else about it to `key`."""
    try:
        _flatten(value, tensors, key, function)
    except RecursionError:
        raise _too_deep(f"{function}: an argument") from None


def _too_deep(what: str) -> RecursionError:
    return RecursionError(f"{what} is nested too deeply, or contains itself")


def _flatten(value: Any, tensors: list[Tensor], key: list[Hashable], function: str) -> None:
    kind = type(value)
    if isinstance(value, Tensor):
        tensors.append(value)
        key.append(Tensor)
    elif kind in PLAIN:
        # Not the value itself: 1 equals True, -0.0 equals 0.0, and NaN does not equal itself.
        key.append((kind, repr(value)))
    elif kind in (list, tuple) or hasattr(value, "_fields") and isinstance(value, tuple):
        key.append((kind, len(value)))
        for item in value:
            _flatten(item, tensors, key, function)
    elif kind is dict:
        key.append((dict, len(value)))
        for name, item in value.items():
            _flatten(name, tensors, key, function)
            _flatten(item, tensors, key, function)
    elif hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        module = f"{kind.__module__.split('.')[0]}.{kind.__name__}"
        raise TypeError(f"{function}: an argument is of type {module}, expected tensors; convert it with mt.asarray()")
    else:
        key.append(Same(value))


def rebuilder(value: Any, tensors: list[Tensor], function: str = "mt.jit: the function") -> Rebuild:
    """Appends the tensors in the result of a function to `tensors`. Returns what makes a result from others."""
    try:
        return _rebuilder(value, tensors, function)
    except RecursionError:
        raise _too_deep(f"{function}: the result") from None


def _rebuilder(value: Any, tensors: list[Tensor], function: str) -> Rebuild:
    kind = type(value)
    if isinstance(value, Tensor):
        tensors.append(value)
        return next
    if kind in (list, tuple) or hasattr(value, "_fields") and isinstance(value, tuple):
        parts = [_rebuilder(item, tensors, function) for item in value]
        make = kind._make if hasattr(value, "_fields") else kind
        return lambda results: make([part(results) for part in parts])
    if kind is dict:
        named = {name: _rebuilder(item, tensors, function) for name, item in value.items()}
        return lambda results: {name: part(results) for name, part in named.items()}
    if not isinstance(value, FIXED):
        raise TypeError(
            f"{function} returned a {kind.__name__}, expected tensors, plain values, and lists, "
            "tuples and dicts of them; convert the result outside of the function"
        )
    return lambda _: value


def replaced(value: Any, tensors: Iterator[Tensor]) -> Any:
    """Returns the value with other tensors, in the order of `flatten`."""
    kind = type(value)
    if isinstance(value, Tensor):
        return next(tensors)
    if kind in (list, tuple):
        return kind(replaced(item, tensors) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind._make(replaced(item, tensors) for item in value)
    if kind is dict:
        return {name: replaced(item, tensors) for name, item in value.items()}
    return value


def described(value: Any) -> str:
    """Returns the structure of a value as a text, such as `(float32 (3,), None)`."""
    kind = type(value)
    if isinstance(value, Tensor):
        return f"{value.dtype.name} {value.shape}"
    if kind in (list, tuple) or isinstance(value, tuple):
        items = ", ".join(map(described, value)) + ("," if kind is tuple and len(value) == 1 else "")
        return f"[{items}]" if kind is list else f"({items})"
    if kind is dict:
        return "{" + ", ".join(f"{name!r}: {described(item)}" for name, item in value.items()) + "}"
    return repr(value)
