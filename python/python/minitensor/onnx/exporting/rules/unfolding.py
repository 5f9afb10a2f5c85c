"""The matrices of windows."""

from __future__ import annotations

import math

from ..builder import Value
from ..call import Call
from ..rule import rule
from ..windows import Axis, added, axes_of, each, positions, read

__all__: list[str] = []


@rule("window::unfold")
def window_unfold(call: Call) -> Value:
    return _unfolded(call, call["x"], axes_of(call))


def _unfolded(call: Call, x: Value, axes: list[Axis]) -> Value:
    return call.builder.node("Reshape", read(x, positions(axes), 0, -1), call.sizes_of_result())


@rule("window::fold")
def window_fold(call: Call) -> Value:
    return _folded(call, call["x"], axes_of(call))


def _folded(call: Call, x: Value, axes: list[Axis]) -> Value:
    b, table = call.builder, positions(axes)
    assert x.shape is not None
    [rows, _] = call.fixed(x.shape[-2:])
    x = b.node("Reshape", x, call.graph.sizes([*x.shape[:-2], rows // table.shape[0], table.size]))
    return b.node("Reshape", added(x, table, axes), call.sizes_of_result())


def _image_axes(call: Call, sizes: list[int]) -> list[Axis]:
    names = ("kernel_size", "stride", "dilation", "padding")
    axes = []
    for size, taps, stride, dilation, padding in zip(
        sizes, *(each(call.plain(name), 2) for name in names), strict=True
    ):
        count = (size + 2 * padding - 1 - (taps - 1) * dilation) // stride + 1
        axes.append(Axis(size, count, taps, stride, dilation, padding))
    return axes


@rule("unfold")
def unfold(call: Call) -> Value:
    x = call["x"]
    assert x.shape is not None
    axes = _image_axes(call, call.fixed(x.shape[-2:]))
    volume = math.prod(a.size for a in axes)
    flat = call.builder.node("Reshape", x, call.graph.sizes([*x.shape[:-2], volume]))
    return _unfolded(call, flat, axes)


@rule("fold")
def fold(call: Call) -> Value:
    return _folded(call, call["x"], _image_axes(call, each(call.plain("output_size"), 2)))
