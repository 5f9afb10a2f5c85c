"""Reductions over axes, with the special cases of minitensor."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from . import dtypes
from .builder import Value

__all__ = ["any_true", "arg_extremum", "cumsum", "extremum", "in_order", "order", "reduced"]


def reduced(op: str, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    """A reduction by an op of ONNX."""
    return x.builder.node(op, x, x.builder.integers(axes), keepdims=int(keepdims))


def in_order(x: Value) -> Value:
    """Numbers in the same order: runtimes have no order of uint64."""
    if x.dtype != "uint64":
        return x
    found = (x ^ 2**63).cast("int64")
    found.shape = x.shape
    return found


def any_true(x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    """Whether any truth value is true. onnxruntime has no maximum of no truth values."""
    if x.shape is not None and 0 not in x.shape:
        return reduced("ReduceMax", x, axes, keepdims)
    return reduced("ReduceSum", x.cast("int64"), axes, keepdims) > 0


def extremum(op: str, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    """`ReduceMax` or `ReduceMin`, but NaN if there is one: runtimes do not agree on its place in the order."""
    if x.dtype == "uint64":
        return reduced(op, in_order(x), axes, keepdims).cast("uint64") ^ 2**63
    if not dtypes.is_float(x.dtype):
        return reduced(op, x, axes, keepdims)
    builder, is_nan = x.builder, x.isnan()
    found = reduced(op, builder.where(is_nan, 0.0, x), axes, keepdims)
    has_nan = any_true(is_nan, axes, keepdims)
    return builder.where(has_nan, math.nan, found)


def arg_extremum(op: str, x: Value, axis: int, keepdims: bool) -> Value:
    """`ArgMax` or `ArgMin`: the first index, or that of the first NaN."""
    builder = x.builder

    def index(op: str, values: Value) -> Value:
        return builder.node(op, values, dtype="int64", axis=axis, keepdims=int(keepdims))

    if not dtypes.is_float(x.dtype):
        return index(op, in_order(x))
    is_nan = x.isnan()
    has_nan = any_true(is_nan, [axis], keepdims)
    return builder.where(has_nan, index("ArgMax", is_nan.cast("int32")), index(op, builder.where(is_nan, 0.0, x)))


def cumsum(x: Value, axis: int, is_reversed: bool = False) -> Value:
    """The cumulative sum along an axis."""
    return x.builder.node("CumSum", x, x.builder.constant(axis, "int64"), reverse=int(is_reversed))


def order(x: Value, count: Value, axis: int, is_descending: bool = False) -> Value:
    """The indices of the first `count` elements in order. Equal ones keep their order, and NaN is the greatest."""
    b = x.builder
    if dtypes.is_float(x.dtype):
        # ONNX does not say where NaN is. Here it is greater than ∞, which the greatest number stands for.
        keys = b.where(x.isnan(), math.inf, x.apply("Min", float(np.finfo(x.dtype).max)))
    else:
        keys = in_order(x)
    return b.nodes_of("TopK", [keys, count], [None, "int64"], axis=axis, largest=int(is_descending), sorted=1)[1]
