"""Reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .. import dtypes
from ..builder import Value
from ..call import Call
from ..primitives import truthy
from ..reductions import any_true, arg_extremum, cumsum, extremum, reduced
from ..rule import rule

__all__ = ["over_axes"]

#: A reduction of a tensor over axes. The last argument is `keepdims`.
_Reduction = Callable[[Value, Sequence[int], bool], Value]


def over_axes(call: Call, x: Value, function: _Reduction) -> Value:
    """A reduction over the axes of a call. A tensor without axes to reduce has rows of one element."""
    assert x.shape is not None
    axes = call.axes("axis", len(x.shape))
    if axes:
        return function(x, axes, call.plain("keepdims"))
    return function(x.builder.node("Unsqueeze", x, x.builder.integers([-1])), [-1], False)


def _total(call: Call, op: str, in_dtype: str) -> Value:
    x = call["x"].cast(dtypes.in_full_precision(in_dtype))
    return over_axes(call, x, lambda v, axes, keepdims: reduced(op, v, axes, keepdims))


@rule("sum")
def sum_(call: Call) -> Value:
    return _total(call, "ReduceSum", call.outputs[0].dtype)


@rule("prod")
def prod(call: Call) -> Value:
    return _total(call, "ReduceProd", call.outputs[0].dtype)


@rule("mean")
def mean(call: Call) -> Value:
    x = call["x"].cast(dtypes.in_full_precision(call.outputs[0].dtype))

    def average(v: Value, axes: Sequence[int], keepdims: bool) -> Value:
        found = reduced("ReduceMean", v, axes, keepdims)
        # Runtimes return 0 for the mean of nothing.
        return found * math.nan if x.shape is not None and 0 in x.shape else found

    return over_axes(call, x, average)


def _extremum(op: str) -> Callable[[Call], Value]:
    def write(call: Call) -> Value:
        x = call["x"]
        return over_axes(call, x, lambda v, axes, keepdims: extremum(op, v, axes, keepdims))

    return write


rule("max")(_extremum("ReduceMax"))
rule("min")(_extremum("ReduceMin"))


def _position(op: str) -> Callable[[Call], Value]:
    def write(call: Call) -> Value:
        x = call["x"]
        if x.dtype == "bool":
            x = x.cast("uint8")

        def index(v: Value, axes: Sequence[int], keepdims: bool) -> Value:
            if len(axes) == 1:
                return arg_extremum(op, v, axes[0], keepdims)
            # The order of the elements is that of the axes.
            assert v.shape is not None
            b, rank = v.builder, len(v.shape)
            others = [k for k in range(rank) if k not in axes]
            moved = b.node("Transpose", v, perm=[*others, *axes])
            flat = b.node("Reshape", moved, b.integers([0] * len(others) + [-1]))
            found = arg_extremum(op, flat, len(others), False)
            return b.node("Unsqueeze", found, b.integers(axes)) if keepdims else found

        return over_axes(call, x, index)

    return write


rule("argmax")(_position("ArgMax"))
rule("argmin")(_position("ArgMin"))


def _truths(call: Call) -> Value:
    x = call["x"]
    found = truthy(x)
    found.shape = x.shape
    return found


@rule("any")
def any_(call: Call) -> Value:
    return over_axes(call, _truths(call), any_true)


@rule("all")
def all_(call: Call) -> Value:
    x = _truths(call)
    others = ~x
    others.shape = x.shape
    return ~over_axes(call, others, any_true)


@rule("count_nonzero")
def count_nonzero(call: Call) -> Value:
    x = _truths(call).cast("int64")
    return over_axes(call, x, lambda v, axes, keepdims: reduced("ReduceSum", v, axes, keepdims))


@rule("std")
def std(call: Call) -> Value:
    x = call["x"].cast(dtypes.in_full_precision(call.outputs[0].dtype))
    correction = float(call.plain("correction"))

    def spread(v: Value, axes: Sequence[int], keepdims: bool) -> Value:
        b = v.builder
        distance = v - reduced("ReduceMean", v, axes, True)
        total = reduced("ReduceSum", distance * distance, axes, keepdims)
        sizes = b.node("Gather", b.shape(v), b.integers(axes))
        count = reduced("ReduceProd", sizes, [0], False).cast(v.dtype) - correction
        return (total / b.node("Max", count, b.number(0, v.dtype))).apply("Sqrt")

    return over_axes(call, x, spread)


@rule("cumsum")
def cumulative_sum(call: Call) -> Value:
    x = call["x"]
    assert x.shape is not None
    wide = x.cast(dtypes.in_full_precision(call.outputs[0].dtype))
    if not x.shape:
        return wide.apply("Identity")
    return cumsum(wide, call.axis("axis", len(x.shape)))


@rule("row::prod_of_others")
def product_of_others(call: Call) -> Value:
    x, b = call["x"], call.builder
    # A row for each element, with 1 in its place.
    size = b.node("Squeeze", b.shape(x, -1), b.integers([0]))
    positions = b.node("Range", b.constant(0, "int64"), size, b.constant(1, "int64"))
    is_own = positions.equal(b.node("Unsqueeze", positions, b.integers([1])))
    others = b.where(is_own, 1, b.node("Unsqueeze", x, b.integers([-2])))
    return b.node("ReduceProd", others, b.integers([-1]), keepdims=0)
