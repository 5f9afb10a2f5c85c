"""Arithmetic of known numbers: shapes, and what models compute from them.

Such numbers stay NumPy arrays, so that they are known while `mt.jit` records the model. An operator is computed here
if all of its inputs are known and it is in the table; all others are computed with tensors.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .elements import DTYPES
from .values import Known

__all__ = ["MAX_SIZE", "compute"]

#: The largest number of elements that are known.
MAX_SIZE = 4096


class _Unknown(Exception):
    """A call that is not computed here."""


def compute(name: str, inputs: Sequence[Known | None], attributes: dict[str, Any]) -> list[Known] | None:
    """Returns the results of a call; None if it is not computed here."""
    function = _TABLE.get(name)
    if function is None or not inputs or inputs[0] is None or sum(x.size for x in inputs if x is not None) > MAX_SIZE:
        return None
    try:
        with np.errstate(all="ignore"):
            found = function(*inputs, **attributes)
    except (_Unknown, TypeError, ValueError, IndexError, OverflowError):
        # The rule of the operator computes the call, or reports what is wrong.
        return None
    return [np.asarray(x) for x in found] if isinstance(found, list) else [np.asarray(found)]


def _same(function: Callable[..., Any]) -> Callable[..., Known]:
    """A function whose result has the dtype of its first operand."""
    return lambda *operands: np.asarray(function(*operands)).astype(operands[0].dtype)


def _divide(a: Known, b: Known) -> Known:
    if a.dtype.kind == "f":
        return a / b
    if not b.all():
        raise _Unknown
    quotient = np.abs(a) // np.abs(b)
    return (quotient * np.sign(a) * np.sign(b)).astype(a.dtype)


def _mod(a: Known, b: Known, fmod: int = 0) -> Known:
    if a.dtype.kind != "f" and not b.all():
        raise _Unknown
    return np.fmod(a, b) if fmod else np.mod(a, b)


def _pow(x: Known, y: Known) -> Known:
    if x.dtype.kind != "f" and (y < 0).any():
        raise _Unknown
    return np.asarray(np.power(x, y)).astype(x.dtype)


def _tile(x: Known, repeats: Known) -> Known:
    _size([n * r for n, r in zip(x.shape, repeats.tolist(), strict=True)])
    return np.tile(x, repeats.tolist())


def _cast(x: Known, to: int) -> Known:
    dtype = DTYPES.get(to, "bfloat16")
    if dtype == "bfloat16" or not dtype.startswith("float") and not np.isfinite(x).all():
        raise _Unknown
    return x.astype(dtype)


def _size(shape: Sequence[int]) -> tuple[int, ...]:
    if any(n < 0 for n in shape) or math.prod(shape) > MAX_SIZE:
        raise _Unknown
    return tuple(shape)


def _slice(x: Known, starts: Known, ends: Known, axes: Known | None = None, steps: Known | None = None) -> Known:
    index: list[slice] = [slice(None)] * x.ndim
    at = range(len(starts)) if axes is None else axes.tolist()
    for k, axis in enumerate(at):
        first, last, step = int(starts[k]), int(ends[k]), 1 if steps is None else int(steps[k])
        # An end before the first element is -1 - n in Python: -1 is the last one.
        index[axis] = slice(first, None if step < 0 and last < -x.shape[axis] else last, step)
    return x[tuple(index)]


def _squeeze(x: Known, axes: Known | None = None) -> Known:
    return np.squeeze(x, None if axes is None else tuple(axes.reshape(-1).tolist()))


def _unsqueeze(x: Known, axes: Known) -> Known:
    return np.expand_dims(x, tuple(axes.reshape(-1).tolist()))


def _reshape(x: Known, shape: Known, allowzero: int = 0) -> Known:
    sizes = [x.shape[k] if n == 0 and not allowzero else n for k, n in enumerate(shape.tolist())]
    return x.reshape(sizes)


def _reduction(function: Callable[..., Any]) -> Callable[..., Known]:
    # The axes are an input, or an attribute in older opsets.
    def compute(
        x: Known, axes: Known | list[int] | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Known:
        chosen = None if axes is None else tuple(np.reshape(axes, -1).tolist())
        if not chosen and noop_with_empty_axes:
            return x
        return np.asarray(function(x, axis=chosen or None, keepdims=bool(keepdims))).astype(x.dtype)

    return compute


def _range(start: Known, limit: Known, delta: Known, stash_type: int = 1) -> Known:
    if start.dtype.kind not in "iu" or not delta.all():
        raise _Unknown
    found = range(int(start.item()), int(limit.item()), int(delta.item()))
    return np.array([found[k] for k in range(*_bounded(len(found)))], dtype=start.dtype)


def _bounded(count: int) -> tuple[int]:
    return _size((count,))  # type: ignore[return-value]


def _constant_of_shape(shape: Known, value: Any = None) -> Known:
    fill = np.zeros(1, "float32") if value is None else value
    if not isinstance(fill, np.ndarray) or fill.dtype.kind == "O":
        raise _Unknown
    return np.full(_size(shape.tolist()), fill.item(), fill.dtype)


def _expand(x: Known, shape: Known) -> Known:
    return np.broadcast_to(x, _size(np.broadcast_shapes(x.shape, tuple(shape.tolist())))).copy()


def _split(x: Known, split: Known | None = None, axis: int = 0, num_outputs: int | None = None) -> list[Known]:
    if split is None:
        raise _Unknown
    return np.split(x, np.cumsum(split)[:-1].tolist(), axis)


_TABLE: dict[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Add": np.add,
    "And": np.logical_and,
    "Cast": _cast,
    "Ceil": _same(np.ceil),
    "Concat": lambda *xs, axis: np.concatenate(xs, axis),
    "ConstantOfShape": _constant_of_shape,
    "Div": _divide,
    "Equal": np.equal,
    "Expand": _expand,
    "Floor": _same(np.floor),
    "Gather": lambda x, at, axis=0: np.take(x, at, axis),
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Identity": lambda x: x,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Max": lambda *xs: np.maximum.reduce(np.broadcast_arrays(*xs)),
    "Min": lambda *xs: np.minimum.reduce(np.broadcast_arrays(*xs)),
    "Mod": _mod,
    "Mul": np.multiply,
    "Neg": np.negative,
    "NonZero": lambda x: np.array(np.nonzero(np.atleast_1d(x)), dtype="int64"),
    "Not": np.logical_not,
    "Or": np.logical_or,
    "Pow": _pow,
    "Range": _range,
    "ReduceMax": _reduction(np.max),
    "ReduceMin": _reduction(np.min),
    "ReduceProd": _reduction(np.prod),
    "ReduceSum": _reduction(np.sum),
    "Reshape": _reshape,
    "Round": _same(np.round),
    "Sign": np.sign,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Sqrt": _same(np.sqrt),
    "Sub": np.subtract,
    "Sum": lambda *xs: functools.reduce(np.add, xs),
    "Tile": _tile,
    "Transpose": lambda x, perm=None: np.transpose(x, perm),
    "Unsqueeze": _unsqueeze,
    "Where": np.where,
}
