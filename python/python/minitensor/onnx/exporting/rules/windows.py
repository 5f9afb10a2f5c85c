"""Windows over the last axes: pooling, and the matrices of windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes
from ..builder import Value
from ..call import Call
from ..reductions import extremum, reduced
from ..rule import Refused, rule

__all__ = ["Axis", "axes_of", "batched", "unbatched"]


class Axis(NamedTuple):
    """The windows along an axis."""

    size: int
    windows: int
    taps: int
    stride: int
    dilation: int
    padding: int

    @property
    def span(self) -> int:
        """The number of positions from the first that windows read to the last."""
        return (self.windows - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    def positions(self) -> np.ndarray[Any, Any]:
        """For each tap and window, the position that it reads; −1 if there is none."""
        taps, windows = np.arange(self.taps) * self.dilation, np.arange(self.windows) * self.stride
        found = taps[:, None] + windows[None, :] - self.padding
        return np.where((found >= 0) & (found < self.size), found, -1)


def axes_of(call: Call) -> list[Axis]:
    """The attribute `windows`."""
    numbers = call.plain("windows")
    return [Axis(*numbers[k : k + 6]) for k in range(0, 18, 6)]


def _positions(axes: list[Axis]) -> np.ndarray[Any, Any]:
    """For each tap and window over several axes, the position in a volume; −1 if there is none."""
    found = np.zeros((1, 1), int)
    for axis in axes:
        own = axis.positions()
        pairs = found[:, None, :, None] * axis.size + own[None, :, None, :]
        is_outside = (found[:, None, :, None] < 0) | (own[None, :, None, :] < 0)
        found = np.where(is_outside, -1, pairs).reshape(found.shape[0] * axis.taps, found.shape[1] * axis.windows)
    return found


def batched(call: Call, x: Value, rank: int, axes: int = 2) -> Value:
    """The tensor with two dimensions before the axes of windows, as ONNX has it."""
    assert x.shape is not None
    if len(x.shape) == rank + 2:
        return x
    sizes = x.shape[len(x.shape) - rank - 1 :] if axes == 2 else (1, *x.shape[len(x.shape) - rank :])
    lead = 1 if len(x.shape) < rank + 2 and axes == 2 else -1
    if any(not isinstance(size, int) for size in sizes):
        return call.builder.node("Reshape", x, call.graph.sizes([lead, *sizes]))
    return call.builder.node("Reshape", x, call.builder.integers([lead, *map(int, sizes)]))


def unbatched(call: Call, found: Value, x: Value, rank: int) -> Value:
    """The inverse of `batched`, for a result."""
    assert x.shape is not None
    return (
        found
        if len(x.shape) == rank + 2
        else call.builder.node("Reshape", found, call.sizes_to_reshape(call.outputs[0].shape))
    )


def _read(x: Value, positions: np.ndarray[Any, Any], fill: float, axis: int) -> Value:
    """The elements at positions of an axis, which becomes one axis; those at −1 are `fill`."""
    b = x.builder
    if (positions < 0).any():
        margins = b.integers([0, 1])
        x = b.node("Pad", x, margins, b.number(fill, x.dtype), b.integers([axis]))
    return b.node("Gather", x, b.integers(positions.reshape(-1).tolist()), axis=axis)


def _split(x: Value, shape: tuple[int, int], axis: int) -> Value:
    """The tensor with an axis as two axes."""
    b = x.builder
    before = b.shape(x, None, axis)
    after = [b.shape(x, axis + 1)] if axis < -1 else []
    return b.node("Reshape", x, b.concat([before, b.integers(shape), *after]))


@rule("window::unfold")
def window_unfold(call: Call) -> Value:
    x = _real(call["x"])
    return _unfolded(call, x, axes_of(call))


def _real(x: Value) -> Value:
    if x.dtype.startswith("complex"):
        raise Refused("ONNX has no arithmetic of complex numbers")
    return x


def _unfolded(call: Call, x: Value, axes: list[Axis]) -> Value:
    found = _read(x, _positions(axes), 0, -1)
    return call.builder.node("Reshape", found, call.sizes_of_result())


@rule("window::fold")
def window_fold(call: Call) -> Value:
    return _folded(call, _real(call["x"]), axes_of(call))


def _folded(call: Call, x: Value, axes: list[Axis]) -> Value:
    """Adds the elements of windows. Those outside of the volume are added to an element that is removed."""
    b, positions = call.builder, _positions(axes)
    volume = math.prod(a.size for a in axes)
    assert x.shape is not None
    lead, rows = x.shape[:-2], call.fixed(x.shape[-2:])[0]
    x = b.node("Reshape", x, call.graph.sizes([*lead, rows // positions.shape[0], positions.size]))
    indices = b.integers(np.where(positions < 0, volume, positions).reshape(-1).tolist())
    indices = b.node("Expand", indices, b.shape(x))
    zeros = b.node("Expand", b.number(0, x.dtype), b.concat([b.shape(x, 0, -1), b.integers([volume + 1])]))
    found = b.node("ScatterElements", zeros, indices, x, axis=-1, reduction="add")
    found = b.node("Slice", found, b.integers([0]), b.integers([volume]), b.integers([-1]))
    return b.node("Reshape", found, call.sizes_of_result())


@rule("window::max")
def window_max(call: Call) -> Value:
    return _largest(call["x"], axes_of(call))


def _largest(x: Value, axes: list[Axis]) -> Value:
    """The largest element of each window of volumes."""
    positions = _positions(axes)
    taps = _split(_read(x, positions, -math.inf, -1), (positions.shape[0], positions.shape[1]), -1)
    return extremum("ReduceMax", taps, [-2], False)


def _float(call: Call, name: str) -> Value:
    """An input in the dtype of the result."""
    return _real(call[name]).cast(dtypes.in_full_precision(call.outputs[0].dtype))


def _bounded(call: Call) -> tuple[list[range], list[int]]:
    bounds, counts = call.plain("bounds"), call.plain("counts")
    return [range(*pair) for pair in zip(bounds[::2], bounds[1::2], strict=True)], counts


def _listed(places: list[list[int]]) -> np.ndarray[Any, Any]:
    """Lists of positions as a table, with −1 after shorter ones."""
    most = max(1, *map(len, places)) if places else 1
    return np.array([place + [-1] * (most - len(place)) for place in places], int).reshape(len(places), most)


def _sums(x: Value, places: list[list[int]], axis: int) -> Value:
    """The sums of the elements at each list of positions of an axis."""
    table = _listed(places)
    found = _split(_read(x, table, 0, axis), table.shape, axis)
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


def _each(values: list[int], rank: int) -> list[int]:
    return values * rank if len(values) == 1 else values


def _rank(call: Call) -> int:
    return int(call.op.removesuffix("d")[-1])


def _pool_axes(call: Call, x: Value, rank: int) -> list[Axis]:
    """The windows of a pooling op, over axes of fixed sizes."""
    assert x.shape is not None
    sizes, counts = call.fixed(x.shape[-rank:]), call.fixed(call.outputs[0].shape[-rank:])
    kernel = _each(call.plain("kernel_size"), rank)
    stride = _each(call.plain("stride"), rank) if call.plain("stride") is not None else kernel
    padding, dilation = _each(call.plain("padding"), rank), _each(call.attrs.get("dilation", [1]), rank)
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
    outputs = _each(call.plain("output_size"), rank)
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


def _image_axes(call: Call, sizes: list[int]) -> list[Axis]:
    names = ("kernel_size", "stride", "dilation", "padding")
    axes = []
    for size, taps, stride, dilation, padding in zip(
        sizes, *(_each(call.plain(name), 2) for name in names), strict=True
    ):
        count = (size + 2 * padding - 1 - (taps - 1) * dilation) // stride + 1
        axes.append(Axis(size, count, taps, stride, dilation, padding))
    return axes


@rule("unfold")
def unfold(call: Call) -> Value:
    x = _real(call["x"])
    assert x.shape is not None
    axes = _image_axes(call, call.fixed(x.shape[-2:]))
    volume = math.prod(a.size for a in axes)
    flat = call.builder.node("Reshape", x, call.graph.sizes([*x.shape[:-2], volume]))
    return _unfolded(call, flat, axes)


@rule("fold")
def fold(call: Call) -> Value:
    return _folded(call, _real(call["x"]), _image_axes(call, _each(call.plain("output_size"), 2)))
