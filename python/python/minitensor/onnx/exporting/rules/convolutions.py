"""Convolutions and their transposes.

onnxruntime has no kernels of float64 for them. There, a convolution is a product with the matrix of its windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ....ir.symbols import Size
from ..builder import Value
from ..call import Call
from ..rule import rule
from ..windows import Axis, added, axes_of, batched, each, positions, read, unbatched
from .conversion import in_dtype_of_result

__all__: list[str] = []

_Shape = Sequence[Size] | None


def _rank(call: Call) -> int:
    return int(call.op.removesuffix("d")[-1])


def _given(call: Call, *names: str) -> tuple[Value, Value, Value | None]:
    """The two tensors of a convolution, and the bias if there is one."""
    x, y, *bias = in_dtype_of_result(call, *names)
    assert x is not None and y is not None
    return x, y, bias[0] if bias else None


@rule("conv1d", "conv2d", "conv3d")
def convolution(call: Call) -> Value:
    x, weight, bias = _given(call, "x", "weight", "bias")
    rank = _rank(call)
    image = batched(call, x, rank)
    if x.dtype == "float64":
        axes = _axes(call, rank, x.shape, call.outputs[0].shape, weight)
        found = _forward(call, _flat(image), _flat(weight), bias, axes, weight)
        found = _with_sizes(found, [a.windows for a in axes])
    else:
        found = call.builder.node("Conv", image, weight, bias, **_attributes(call, rank))
    return unbatched(call, found, x, rank)


@rule("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def transposed_convolution(call: Call) -> Value:
    x, weight, bias = _given(call, "x", "weight", "bias")
    rank = _rank(call)
    windows = batched(call, x, rank)
    if x.dtype == "float64":
        axes = _axes(call, rank, call.outputs[0].shape, x.shape, weight)
        found = _transposed(call, _flat(windows), _flat(weight), axes, weight)
        if bias is not None:
            found = found + call.builder.node("Unsqueeze", bias, call.builder.integers([1]))
        found = _with_sizes(found, [a.size for a in axes])
    else:
        padding = each(call.plain("output_padding"), rank)
        found = call.builder.node(
            "ConvTranspose", windows, weight, bias, output_padding=padding, **_attributes(call, rank)
        )
    return unbatched(call, found, x, rank)


def _attributes(call: Call, rank: int) -> dict[str, Any]:
    return {
        "group": call.plain("groups"),
        "pads": each(call.plain("padding"), rank) * 2,
        "strides": each(call.plain("stride"), rank),
        "dilations": each(call.plain("dilation"), rank),
    }


def _axes(call: Call, rank: int, volume: _Shape, windows: _Shape, weight: Value) -> list[Axis]:
    """The windows of a convolution over axes of fixed sizes, from the shapes of both sides."""
    sizes = [call.fixed((shape or ())[-rank:]) for shape in (volume, windows, weight.shape)]
    steps = [each(call.plain(name), rank) for name in ("stride", "dilation", "padding")]
    return [Axis(*numbers) for numbers in zip(*sizes, *steps, strict=True)]


@rule("convolution::forward")
def forward(call: Call) -> Value:
    x, weight, bias = _given(call, "x", "weight", "bias")
    axes = axes_of(call)
    if x.dtype == "float64":
        return _forward(call, x, weight, bias, axes, weight)
    volume = _padded(_with_sizes(x, [a.size for a in axes]), [a.padding for a in axes], _after(axes))
    kernel = _with_sizes(weight, [a.taps for a in axes])
    found = call.builder.node("Conv", volume, kernel, bias, group=call.plain("groups"), **_steps(axes))
    return _flat(found)


@rule("convolution::input")
def input_gradient(call: Call) -> Value:
    y, weight, _ = _given(call, "y", "weight")
    axes = axes_of(call)
    if y.dtype == "float64":
        return _transposed(call, y, weight, axes, weight)
    windows, kernel = _with_sizes(y, [a.windows for a in axes]), _with_sizes(weight, [a.taps for a in axes])
    found = call.builder.node("ConvTranspose", windows, kernel, group=call.plain("groups"), **_steps(axes))
    return _flat(_padded(found, [-a.padding for a in axes], [-n for n in _after(axes)]))


@rule("convolution::weight")
def weight_gradient(call: Call) -> Value:
    x, y, _ = _given(call, "x", "y")
    b, axes, groups = call.builder, axes_of(call), call.plain("groups")
    assert x.shape is not None
    samples, channels, _ = call.fixed(x.shape)
    if x.dtype == "float64":
        matrix = b.node("Transpose", _windows(x, axes, groups), perm=[0, 1, 3, 2])
        found = b.node("MatMul", b.node("Reshape", y, b.integers([0, groups, -1, _count(axes)])), matrix)
        return b.node("Reshape", b.node("ReduceSum", found, b.integers([0]), keepdims=0), call.sizes_of_result())
    # A convolution with the results as its weight: the samples are its channels, and stride and dilation change places.
    sizes = [a.size for a in axes]
    volume = b.node("Reshape", x, b.integers([samples, groups, channels // groups, *sizes]))
    volume = b.node("Transpose", volume, perm=[2, 1, 0, 3, 4, 5])
    volume = b.node("Reshape", volume, b.integers([channels // groups, groups * samples, *sizes]))
    volume = _padded(volume, [a.padding for a in axes], _after(axes))
    windows = b.node("Transpose", _with_sizes(y, [a.windows for a in axes]), perm=[1, 0, 2, 3, 4])
    strides, dilations = [a.dilation for a in axes], [a.stride for a in axes]
    found = b.node("Conv", volume, windows, group=groups, strides=strides, dilations=dilations)
    return _flat(b.node("Transpose", found, perm=[1, 0, 2, 3, 4]))


# By ops of ONNX.


def _with_sizes(x: Value, sizes: list[int]) -> Value:
    """The tensor with its last axis as axes of these sizes."""
    return x.builder.node("Reshape", x, x.builder.integers([0, 0, *sizes]))


def _flat(x: Value) -> Value:
    """The tensor with all axes but two as one."""
    return x.builder.node("Reshape", x, x.builder.integers([0, 0, -1]))


def _after(axes: list[Axis]) -> list[int]:
    """The margin after each axis that windows reach."""
    return [a.span - a.size - a.padding for a in axes]


def _padded(x: Value, before: list[int], after: list[int]) -> Value:
    """The tensor with margins around its last axes; a negative one removes elements."""
    b, axes = x.builder, range(-len(before), 0)
    return b.node("Pad", x, b.integers([*before, *after]), b.number(0, x.dtype), b.integers(axes))


def _steps(axes: list[Axis]) -> dict[str, Any]:
    return {"strides": [a.stride for a in axes], "dilations": [a.dilation for a in axes]}


# By products of matrices. Groups are an axis of their own.


def _count(axes: Sequence[Axis]) -> int:
    """The number of windows."""
    return math.prod(axis.windows for axis in axes)


def _windows(x: Value, axes: list[Axis], groups: int) -> Value:
    """The windows of `[n, channels, volume]` as matrices `[n, groups, channels / groups · taps, windows]`."""
    found = read(x, positions(axes), 0, -1)
    return x.builder.node("Reshape", found, x.builder.integers([0, groups, -1, _count(axes)]))


def _kernel(call: Call, flat: Value, weight: Value) -> Value:
    """A weight as matrices `[groups, outputs / groups, inputs / groups · taps]`."""
    assert weight.shape is not None
    groups, outputs = call.plain("groups"), call.fixed(weight.shape[:1])[0]
    return call.builder.node("Reshape", flat, call.builder.integers([groups, outputs // groups, -1]))


def _forward(call: Call, x: Value, flat: Value, bias: Value | None, axes: list[Axis], weight: Value) -> Value:
    b = call.builder
    found = b.node("MatMul", _kernel(call, flat, weight), _windows(x, axes, call.plain("groups")))
    assert weight.shape is not None
    found = b.node("Reshape", found, b.integers([0, *call.fixed(weight.shape[:1]), _count(axes)]))
    return found if bias is None else found + b.node("Unsqueeze", bias, b.integers([1]))


def _transposed(call: Call, y: Value, flat: Value, axes: list[Axis], weight: Value) -> Value:
    b, groups = call.builder, call.plain("groups")
    assert weight.shape is not None
    outputs, inputs = call.fixed(weight.shape[:2])
    kernel = b.node("Transpose", _kernel(call, flat, weight), perm=[0, 2, 1])
    windows = b.node("Reshape", y, b.integers([0, groups, outputs // groups, _count(axes)]))
    table = positions(axes)
    found = b.node("Reshape", b.node("MatMul", kernel, windows), b.integers([0, groups * inputs, table.size]))
    return added(found, table, axes)
