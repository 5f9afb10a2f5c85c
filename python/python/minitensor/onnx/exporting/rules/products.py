"""Products of matrices, and convolutions."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..builder import Value
from ..call import Call
from ..rule import Refused, rule
from .windows import Axis, axes_of, batched, unbatched

__all__: list[str] = []


def _operands(call: Call, *names: str) -> list[Value | None]:
    """Inputs in the dtype of the result."""
    dtype = dtypes.in_full_precision(call.outputs[0].dtype)
    if dtype.startswith("complex"):
        raise Refused("ONNX has no arithmetic of complex numbers")
    given = [call.optional(name) for name in names]
    return [None if x is None else x.cast(dtype) for x in given]


@rule("matmul", "linalg::matrix_product")
def matmul(call: Call) -> Value:
    x, y = _operands(call, "x", "y")
    return call.builder.node("MatMul", x, y)


def _each(values: list[int], rank: int) -> list[int]:
    return values * rank if len(values) == 1 else values


def _convolution(call: Call, op: str) -> Value:
    rank = int(call.op.removesuffix("d")[-1])
    x, weight, bias = _operands(call, "x", "weight", "bias")
    assert x is not None
    steps: dict[str, Any] = {
        name: _each(call.plain(own), rank)
        for name, own in (("strides", "stride"), ("dilations", "dilation"), ("output_padding", "output_padding"))
        if own in call.attrs
    }
    pads = _each(call.plain("padding"), rank) * 2
    found = call.builder.node(op, batched(call, x, rank), weight, bias, group=call.plain("groups"), pads=pads, **steps)
    return unbatched(call, found, x, rank)


@rule("conv1d", "conv2d", "conv3d")
def convolution(call: Call) -> Value:
    return _convolution(call, "Conv")


@rule("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def transposed_convolution(call: Call) -> Value:
    return _convolution(call, "ConvTranspose")


def _reshaped(call: Call, x: Value, sizes: list[int]) -> Value:
    """The tensor with its last axis as three axes."""
    return call.builder.node("Reshape", x, call.builder.integers([0, 0, *sizes]))


def _padded(x: Value, before: list[int], after: list[int]) -> Value:
    """The tensor with margins around its last axes; a negative one removes elements."""
    b, axes = x.builder, range(-len(before), 0)
    zero = b.number(0, x.dtype)
    return b.node("Pad", x, b.integers([*before, *after]), zero, b.integers(axes))


def _steps(axes: list[Axis]) -> dict[str, Any]:
    return {"strides": [a.stride for a in axes], "dilations": [a.dilation for a in axes]}


def _flat(call: Call, x: Value) -> Value:
    return call.builder.node("Reshape", x, call.builder.integers([0, 0, -1]))


@rule("convolution::forward")
def forward(call: Call) -> Value:
    x, weight, bias = _operands(call, "x", "weight", "bias")
    assert x is not None and weight is not None
    axes = axes_of(call)
    volume = _reshaped(call, x, [a.size for a in axes])
    volume = _padded(volume, [a.padding for a in axes], [a.span - a.size - a.padding for a in axes])
    kernel = _reshaped(call, weight, [a.taps for a in axes])
    found = call.builder.node("Conv", volume, kernel, bias, group=call.plain("groups"), **_steps(axes))
    return _flat(call, found)


@rule("convolution::input")
def input_gradient(call: Call) -> Value:
    y, weight = _operands(call, "y", "weight")
    assert y is not None and weight is not None
    axes = axes_of(call)
    windows, kernel = _reshaped(call, y, [a.windows for a in axes]), _reshaped(call, weight, [a.taps for a in axes])
    found = call.builder.node("ConvTranspose", windows, kernel, group=call.plain("groups"), **_steps(axes))
    return _flat(call, _padded(found, [-a.padding for a in axes], [a.size + a.padding - a.span for a in axes]))


@rule("convolution::weight")
def weight_gradient(call: Call) -> Value:
    x, y = _operands(call, "x", "y")
    assert x is not None and y is not None and x.shape is not None
    b, axes, groups = call.builder, axes_of(call), call.plain("groups")
    samples, channels, _ = call.fixed(x.shape)
    # A convolution with the results as its weight: the samples are its channels, and stride and dilation change places.
    sizes = [a.size for a in axes]
    volume = b.node("Reshape", x, b.integers([samples, groups, channels // groups, *sizes]))
    volume = b.node("Transpose", volume, perm=[2, 1, 0, 3, 4, 5])
    volume = b.node("Reshape", volume, b.integers([channels // groups, groups * samples, *sizes]))
    volume = _padded(volume, [a.padding for a in axes], [a.span - a.size - a.padding for a in axes])
    windows = b.node("Transpose", _reshaped(call, y, [a.windows for a in axes]), perm=[1, 0, 2, 3, 4])
    strides, dilations = [a.dilation for a in axes], [a.stride for a in axes]
    found = b.node("Conv", volume, windows, group=groups, strides=strides, dilations=dilations)
    return _flat(call, b.node("Transpose", found, perm=[1, 0, 2, 3, 4]))
