"""The methods of ufuncs that apply a binary element op several times."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .axes import normalize_axis_tuple

if TYPE_CHECKING:
    from .ufunc import Ufunc

__all__ = ["ABSENT", "IDENTITIES", "accumulate", "at", "outer", "reduce", "reduceat"]

#: An argument that was not passed.
ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "<no value>"})()

#: The ops that may be applied in any order, with the operand that changes nothing, as in NumPy.
IDENTITIES: dict[str, Any] = {
    "add": 0,
    "multiply": 1,
    "logical_and": True,
    "logical_or": False,
    "logical_xor": False,
    "bitwise_and": -1,
    "bitwise_or": 0,
    "bitwise_xor": 0,
    "hypot": 0,
    "logaddexp": -math.inf,
    "maximum": None,
    "minimum": None,
}


def _check(ufunc: Ufunc, method: str, attrs: dict[str, Any], counts: tuple[int, ...] = (2,)) -> None:
    if ufunc.signature is not None:
        raise TypeError(f"{ufunc.__name__}.{method}() is not defined: the op has core dimensions {ufunc.signature}")
    if ufunc.nin not in counts or ufunc.nout != 1:
        wanted = " or ".join(map(str, counts))
        raise TypeError(
            f"{ufunc.__name__}.{method}() needs an op with {wanted} inputs and 1 output, got {ufunc.nin} and "
            f"{ufunc.nout}"
        )
    for name in attrs:
        if name not in ufunc._attrs:
            raise TypeError(
                f"{ufunc.__name__}.{method}() has no argument '{name}'; the op has the attributes {ufunc._attrs}"
            )


def _converted(ufunc: Ufunc, method: str, array: Any, dtype: Any, out: Any, attrs: dict[str, Any]) -> np.ndarray:
    """Returns the array with a dtype that a result of the op has, too."""
    made = np.asarray(array)
    if dtype is None and out is not None:
        dtype = out.dtype
    if dtype is None and isinstance(ufunc.identity, bool):
        dtype = np.dtype(bool)
    if dtype is not None:
        made = made.astype(dtype)
    probe = np.empty(0, made.dtype)
    result = np.asarray(ufunc._call(probe, probe, **attrs)).dtype
    if result == made.dtype:
        return made
    again = np.empty(0, result)
    if (
        dtype is not None
        or ufunc._call(again, again, **attrs).dtype != result
        or not np.can_cast(made.dtype, result, "same_kind")
    ):
        raise TypeError(
            f"{ufunc.__name__}.{method}(): the op returns {result} for two operands of {made.dtype}, "
            "so it cannot be applied to its own results; pass another dtype"
        )
    return made.astype(result)


def _fold(ufunc: Ufunc, parts: np.ndarray, mask: np.ndarray | None, start: Any, attrs: dict[str, Any]) -> Any:
    """Applies the op along the first axis, from the left to the right. Elements that a mask excludes are skipped."""
    total, parts = (parts[0], parts[1:]) if start is ABSENT else (start, parts)
    for k in range(len(parts)):
        result = ufunc._call(total, parts[k], **attrs)
        total = result if mask is None else np.where(mask[k], result, total)
    return total


def _paired(ufunc: Ufunc, parts: np.ndarray, attrs: dict[str, Any]) -> Any:
    """Applies the op along the first axis, to the two halves again and again."""
    rest = None
    while len(parts) > 1:
        half = len(parts) // 2
        if len(parts) % 2:
            rest = parts[-1] if rest is None else ufunc._call(rest, parts[-1], **attrs)
        parts = ufunc._call(parts[:half], parts[half : 2 * half], **attrs)
    return parts[0] if rest is None else ufunc._call(parts[0], rest, **attrs)


def reduce(
    ufunc: Ufunc,
    array: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    keepdims: bool,
    initial: Any,
    where: Any,
    attrs: dict[str, Any],
) -> Any:
    """See `Ufunc.reduce`."""
    _check(ufunc, "reduce", attrs)
    out = _one(ufunc, out)
    made = _converted(ufunc, "reduce", array, dtype, out, attrs)
    axes = tuple(range(made.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(normalize_axis_tuple(axes, made.ndim))
    is_free = ufunc.__name__ in IDENTITIES and not attrs
    if len(axes) > 1 and not is_free:
        raise ValueError(
            f"{ufunc.__name__}.reduce(): the order of operands matters, so at most one axis may be specified"
        )
    kept = tuple(1 if k in axes else n for k, n in enumerate(made.shape))
    shape = tuple(n for k, n in enumerate(made.shape) if k not in axes)
    parts = _flat(made, axes, shape)
    identity = ufunc.identity if initial is ABSENT or initial is None else initial
    start = ABSENT if identity is None or initial is None else np.full(shape, identity).astype(made.dtype)
    mask = None if where is True else _flat(np.broadcast_to(np.asarray(where, bool), made.shape), axes, shape)
    if mask is not None and start is ABSENT:
        raise ValueError(f"{ufunc.__name__}.reduce(): a mask where needs initial, because the op has no identity")
    if len(parts) == 0:
        if start is ABSENT:
            raise ValueError(
                f"{ufunc.__name__}.reduce(): the axis has no elements, and the op has no identity; pass initial"
            )
        result = start
    elif not is_free or (mask is not None and ufunc.identity is None):
        result = _fold(ufunc, parts, mask, start if initial is not ABSENT or mask is not None else ABSENT, attrs)
    else:
        if mask is not None:
            parts = np.where(mask, parts, np.asarray(ufunc.identity).astype(made.dtype))
        result = _paired(ufunc, parts, attrs)
        # As in NumPy, a single element is combined with the identity, too.
        if start is not ABSENT and (initial is not ABSENT or len(parts) == 1):
            result = ufunc._call(start, result, **attrs)
    result = np.asarray(result).reshape(kept if keepdims else shape)
    return _stored(ufunc, result, out)


def _flat(array: np.ndarray, axes: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """Returns an array with the axes as its first one."""
    count = math.prod(array.shape[a] for a in axes)
    return np.moveaxis(array, axes, range(len(axes))).reshape(count, *shape)


def accumulate(ufunc: Ufunc, array: Any, axis: int, dtype: Any, out: Any, attrs: dict[str, Any]) -> Any:
    """See `Ufunc.accumulate`."""
    _check(ufunc, "accumulate", attrs)
    out = _one(ufunc, out)
    made = np.moveaxis(_converted(ufunc, "accumulate", array, dtype, out, attrs), axis, 0)
    result = made.copy()
    for k in range(1, len(result)):
        result[k] = ufunc._call(result[k - 1], made[k], **attrs)
    return _stored(ufunc, np.moveaxis(result, 0, axis), out)


def reduceat(ufunc: Ufunc, array: Any, indices: Any, axis: int, dtype: Any, out: Any, attrs: dict[str, Any]) -> Any:
    """See `Ufunc.reduceat`."""
    _check(ufunc, "reduceat", attrs)
    out = _one(ufunc, out)
    made = np.moveaxis(_converted(ufunc, "reduceat", array, dtype, out, attrs), axis, 0)
    starts = [int(i) for i in np.asarray(indices)]
    for i in starts:
        if not 0 <= i < len(made):
            raise IndexError(
                f"{ufunc.__name__}.reduceat(): index {i} is out of bounds for an axis with {len(made)} elements"
            )
    result = np.empty((len(starts), *made.shape[1:]), made.dtype)
    for k, (start, end) in enumerate(zip(starts, [*starts[1:], len(made)], strict=True)):
        part = made[start : max(end, start + 1)]
        result[k] = reduce(ufunc, part, 0, None, None, False, None, True, attrs)
    return _stored(ufunc, np.moveaxis(result, 0, axis), out)


def outer(ufunc: Ufunc, a: Any, b: Any, keywords: dict[str, Any]) -> Any:
    """See `Ufunc.outer`."""
    _check(ufunc, "outer", {})
    a, b = np.asanyarray(a), np.asanyarray(b)
    return ufunc(a.reshape(a.shape + (1,) * b.ndim), b, **keywords)


def at(ufunc: Ufunc, array: Any, indices: Any, b: Any, attrs: dict[str, Any]) -> None:
    """See `Ufunc.at`."""
    _check(ufunc, "at", attrs, (1, 2))
    if (ufunc.nin == 2) != (b is not ABSENT):
        raise TypeError(
            f"{ufunc.__name__}.at() takes {ufunc.nin + 1} operands: the array, the indices"
            + ", and the second input" * (ufunc.nin - 1)
        )
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{ufunc.__name__}.at(): the first operand must be an array, got {type(array).__name__}")
    if not array.flags.writeable:
        raise ValueError(f"{ufunc.__name__}.at(): the array is read-only; copy it first")
    places = np.arange(array.size).reshape(array.shape)[indices]
    second = None if b is ABSENT else np.broadcast_to(np.asarray(b), places.shape).ravel()
    places = places.ravel()
    # Elements are changed in rounds: the first occurrences of all indices, then the second ones, and so on.
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if places.size else np.zeros(0, int)
    sizes = np.diff(np.r_[starts, len(ordered)])
    rank = np.arange(len(ordered)) - np.repeat(starts, sizes)
    rounds = np.argsort(rank, kind="stable")
    ends: Any = np.cumsum(np.bincount(rank)) if places.size else []
    start = 0
    for end in ends:
        chosen = order[rounds[start:end]]
        start = end
        position = np.unravel_index(places[chosen], array.shape)
        operands = [array[position]] if second is None else [array[position], second[chosen]]
        result = ufunc._call(*operands, **attrs)
        if not np.can_cast(result.dtype, array.dtype, "same_kind"):
            raise TypeError(
                f"{ufunc.__name__}.at(): cannot cast the result from {result.dtype} to {array.dtype} with casting "
                "rule 'same_kind'"
            )
        array[position] = result


def _one(ufunc: Ufunc, out: Any) -> Any:
    """Returns the array for the result."""
    out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if out is not None and not isinstance(out, np.ndarray):
        raise TypeError(f"{ufunc.__name__}: out must be an array, got {type(out).__name__}")
    return out


def _stored(ufunc: Ufunc, result: np.ndarray, out: Any) -> Any:
    """Returns the result, in `out` if it is given."""
    if out is None:
        return result[()] if result.ndim == 0 else result
    if out.shape != result.shape:
        raise ValueError(f"{ufunc.__name__}: out has the shape {out.shape}, but the result has {result.shape}")
    np.copyto(out, result, casting="same_kind")
    return out
