"""Pooling, and the ops that compute it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from ..builder import Value
from ..call import Call
from ..reductions import extremum, reduced
from ..rule import rule
from ..windows import Axis, Table, axes_of, batched, each, positions, read, split, unbatched

__all__: list[str] = []


@rule("window::max")
def window_max(call: Call) -> Value:
    return _largest(call["x"], axes_of(call))


def _largest(x: Value, axes: list[Axis]) -> Value:
    """The largest element of each window of volumes."""
    table = positions(axes)
    taps = split(read(x, table, -math.inf, -1), (table.shape[0], table.shape[1]), -1)
    return extremum("ReduceMax", taps, [-2], False)


def _float(call: Call, name: str) -> Value:
    """An input in the dtype of the result."""
    return call[name].cast(dtypes.in_full_precision(call.outputs[0].dtype))


def _bounded(call: Call) -> tuple[list[range], list[int]]:
    bounds, counts = call.plain("bounds"), call.plain("counts")
    return [range(*pair) for pair in zip(bounds[::2], bounds[1::2], strict=True)], counts


def _listed(places: list[list[int]]) -> Table:
    """Lists of positions as a table, with −1 after shorter ones."""
    most = max(1, *map(len, places)) if places else 1
    return np.array([place + [-1] * (most - len(place)) for place in places], int).reshape(len(places), most)


def _sums(x: Value, places: list[list[int]], axis: int) -> Value:
    """The sums of the elements at each list of positions of an axis."""
    table = _listed(places)
    found = split(read(x, table, 0, axis), table.shape, axis)
    return reduced("ReduceSum", found, [axis], False)


def _column(x: Value, numbers: list[int], axis: int) -> Value:
    shape = [len(numbers), *[1] * (-axis - 1)]
    return x.builder.constant(np.array(numbers, float).reshape(shape), x.dtype)


@rule("window::mean")
def window_mean(call: Call) -> Value:
    x = _float(call, "x")
    ranges, counts = _bounded(call)
    return _sums(x, [list(r) for r in ranges], -2) / _column(x, counts, -2)


@rule("window::spread")
def window_spread(call: Call) -> Value:
    y = _float(call, "y")
    ranges, counts = _bounded(call)
    rows = [[k for k, r in enumerate(ranges) if n in r] for n in range(call.plain("n"))]
    return _sums(y / _column(y, counts, -2), rows, -2)


def _rank(call: Call) -> int:
    return int(call.op.removesuffix("d")[-1])


def _pool_axes(call: Call, x: Value, rank: int) -> list[Axis]:
    """The windows of a pooling op, over axes of fixed sizes."""
    assert x.shape is not None
    sizes, counts = call.fixed(x.shape[-rank:]), call.fixed(call.outputs[0].shape[-rank:])
    kernel = each(call.plain("kernel_size"), rank)
    stride = each(call.plain("stride"), rank) if call.plain("stride") is not None else kernel
    padding, dilation = each(call.plain("padding"), rank), each(call.attrs.get("dilation", [1]), rank)
    return [Axis(*numbers) for numbers in zip(sizes, counts, kernel, stride, dilation, padding, strict=True)]


def _pooled(call: Call, op: str, axes: list[Axis], **attributes: Any) -> Value:
    rank, x = len(axes), call["x"]
    # The last window may extend beyond the padding, in place of `ceil_mode`, which runtimes do not agree on.
    ends = [max(a.padding, a.span - a.size - a.padding) for a in axes]
    found = call.builder.node(
        op,
        batched(call, x, rank, axes=1),
        kernel_shape=[a.taps for a in axes],
        strides=[a.stride for a in axes],
        pads=[a.padding for a in axes] + ends,
        **attributes,
    )
    return unbatched(call, found, x, rank)


@rule("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(call: Call) -> Value:
    x, b = call["x"], call.builder
    axes = _pool_axes(call, x, _rank(call))
    if x.dtype not in ("float32", "float64", "int8", "uint8"):
        assert x.shape is not None
        volumes = b.node("Reshape", x, call.graph.sizes([*x.shape[: -len(axes)], math.prod(a.size for a in axes)]))
        return b.node("Reshape", _largest(volumes, axes), call.sizes_of_result())
    return _pooled(call, "MaxPool", axes, dilations=[a.dilation for a in axes])


def _averaged(call: Call, windows: Callable[[Axis, int], tuple[range, int]], axes: list[Axis]) -> Value:
    """The means of windows, one axis after the other."""
    found = _float(call, "x")
    for k, axis in enumerate(axes):
        pairs = [windows(axis, i) for i in range(axis.windows)]
        at = k - len(axes)
        found = _sums(found, [list(r) for r, _ in pairs], at) / _column(found, [n for _, n in pairs], at)
    return found


@rule("avg_pool1d", "avg_pool2d", "avg_pool3d")
def average_pool(call: Call) -> Value:
    x = call["x"]
    axes = _pool_axes(call, x, _rank(call))
    includes_padding = call.plain("count_include_pad")
    if x.dtype == "float32" and not call.plain("ceil_mode"):
        return _pooled(call, "AveragePool", axes, count_include_pad=int(includes_padding))

    def window(axis: Axis, i: int) -> tuple[range, int]:
        start = i * axis.stride - axis.padding
        end = min(start + axis.taps, axis.size + axis.padding)
        inside = range(min(max(start, 0), axis.size), min(max(end, 0), axis.size))
        return inside, end - start if includes_padding else len(inside)

    return _averaged(call, window, axes)


@rule("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
def adaptive_average_pool(call: Call) -> Value:
    x, rank = _float(call, "x"), _rank(call)
    outputs = each(call.plain("output_size"), rank)
    if set(outputs) == {1}:
        return reduced("ReduceMean", x, list(range(-rank, 0)), True)
    assert x.shape is not None
    sizes = call.fixed(x.shape[-rank:])
    axes = [Axis(size, count, size // count, size // count, 1, 0) for size, count in zip(sizes, outputs, strict=True)]
    if x.dtype == "float32" and all(a.size == a.windows * a.taps for a in axes):
        return _pooled(call, "AveragePool", axes)

    def window(axis: Axis, i: int) -> tuple[range, int]:
        inside = range(i * axis.size // axis.windows, -(-(i + 1) * axis.size // axis.windows))
        return inside, len(inside)

    return _averaged(call, window, axes)
