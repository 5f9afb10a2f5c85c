"""Integers and narrow floats for numbers, by scales and zero points."""

from __future__ import annotations

from collections.abc import Sequence

from .... import ops
from ....ir.aten.promotion import cast
from ..elements import dtype_of, format_of
from ..error import OnnxError
from ..narrow import NarrowTensor, rounded
from ..rule import rule
from ..values import Fixed, Tensor, Value, tensor
from .windows import convolution


def _values(x: Value) -> Tensor:
    """Returns the numbers of a tensor, also of a narrow one."""
    return x.values if isinstance(x, NarrowTensor) else tensor(x)


def _aligned(t: Tensor, shape: Sequence[int], axis: int, block_size: int) -> Tensor:
    """Returns scales or zero points in a shape that is broadcast: one, one for each index of an axis, or blocks."""
    if t.size == 1 and t.ndim <= 1:
        return ops.reshape(t, [])
    at = axis % len(shape)
    if t.ndim == 1 and not block_size:
        return ops.reshape(t, [-1 if k == at else 1 for k in range(len(shape))])
    if t.ndim != len(shape) or block_size <= 0:
        raise OnnxError(f"scales of shape {t.shape} with blocks of {block_size} do not fit a tensor of shape {shape}")
    wide = ops.expand(ops.expand_dims(t, at + 1), [*t.shape[: at + 1], block_size, *t.shape[at + 1 :]])
    wide = ops.reshape(wide, [*t.shape[:at], t.shape[at] * block_size, *t.shape[at + 1 :]])
    return ops.slice(wide, at, 0, shape[at])


#: The least and the greatest number of narrow formats of integers.
_NARROW_LIMITS = {"INT4": (-8, 7), "UINT4": (0, 15), "INT2": (-2, 1), "UINT2": (0, 3)}


def _limits(dtype: str) -> tuple[int, int]:
    bits = int(dtype.lstrip("uint"))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@rule("QuantizeLinear")
def _quantize_linear(
    x: Tensor,
    y_scale: Fixed,
    y_zero_point: Value = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Value:
    if isinstance(y_zero_point, NarrowTensor):
        wanted, dtype = y_zero_point.format, ""
    elif y_zero_point is not None:
        wanted, dtype = None, y_zero_point.dtype.name
    else:
        wanted = format_of(output_dtype) if output_dtype else None
        dtype = "" if wanted else dtype_of(output_dtype) if output_dtype else "uint8"
    computed = dtype_of(precision) if precision else y_scale.dtype.name
    scale = cast(_aligned(y_scale, x.shape, axis, block_size), computed)
    found = cast(x, computed) / scale
    zero = None if y_zero_point is None else _aligned(_values(y_zero_point), x.shape, axis, block_size)
    if wanted is not None and wanted.is_float:
        found = found if zero is None else found + cast(zero, computed)
        return rounded(found, wanted, bool(saturate))
    # In 16 bits, sums with zero points of 16 bits would be rounded.
    found = ops.round(cast(found, "float32") if found.dtype.itemsize == 2 else found)
    found = found if zero is None else found + cast(zero, found.dtype.name)
    low, high = _NARROW_LIMITS[wanted.name] if wanted else _limits(dtype)
    found = ops.minimum(ops.maximum(found, float(low)), float(high))
    return NarrowTensor(ops.astype(found, wanted.storage), wanted) if wanted else ops.astype(found, dtype)


@rule("DequantizeLinear")
def _dequantize_linear(
    x: Value,
    x_scale: Fixed,
    x_zero_point: Value = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Tensor:
    numbers = _values(x)
    dtype = dtype_of(output_dtype) if output_dtype else x_scale.dtype.name
    if not numbers.dtype.is_floating_point:
        numbers = ops.astype(numbers, "int32")
    if x_zero_point is not None:
        zero = _aligned(_values(x_zero_point), numbers.shape, axis, block_size)
        numbers = numbers - cast(zero, numbers.dtype.name)
    # Integers of more than 11 bits are no numbers of 16 bits.
    computed = "float64" if "float64" in (dtype, x_scale.dtype.name) else "float32"
    scale = cast(_aligned(x_scale, numbers.shape, axis, block_size), computed)
    return cast(cast(numbers, computed) * scale, dtype)


def _centered(x: Tensor, zero_point: Tensor | None, axis: int) -> Tensor:
    """Returns integers of 32 bits without their zero point: one, or one for each row or column."""
    found = ops.astype(x, "int32")
    if zero_point is None:
        return found
    zero = ops.astype(zero_point, "int32")
    if zero.ndim == 1 and zero.size > 1:
        zero = ops.reshape(zero, [-1 if k == axis % x.ndim else 1 for k in range(x.ndim)])
    elif zero.ndim <= 1:
        zero = ops.reshape(zero, [])
    return found - zero


@rule("MatMulInteger")
def _matmul_integer(
    a: Tensor, b: Tensor, a_zero_point: Tensor | None = None, b_zero_point: Tensor | None = None
) -> Tensor:
    return ops.matmul(_centered(a, a_zero_point, -2), _centered(b, b_zero_point, -1))


@rule("QLinearMatMul")
def _qlinear_matmul(
    a: Tensor,
    a_scale: Fixed,
    a_zero_point: Tensor,
    b: Tensor,
    b_scale: Fixed,
    b_zero_point: Tensor,
    y_scale: Fixed,
    y_zero_point: Tensor,
) -> Tensor:
    product = ops.matmul(_centered(a, a_zero_point, -2), _centered(b, b_zero_point, -1))
    rows, columns = (
        ops.reshape(scale, [-1, 1] if is_left else [-1]) if scale.ndim == 1 and scale.size > 1 else scale
        for scale, is_left in ((a_scale, True), (b_scale, False))
    )
    factor = cast(rows, "float32") * cast(columns, "float32") / cast(y_scale, "float32")
    return _requantized(product, factor, y_zero_point)


def _requantized(sums: Tensor, factor: Tensor, zero_point: Tensor) -> Tensor:
    dtype = zero_point.dtype.name
    low, high = _limits(dtype)
    found = ops.round(ops.astype(sums, "float32") * factor) + ops.astype(ops.reshape(zero_point, []), "float32")
    return ops.astype(ops.minimum(ops.maximum(found, float(low)), float(high)), dtype)


def _integer_convolution(
    x: Tensor,
    x_zero_point: Tensor | None,
    w: Tensor,
    w_zero_point: Tensor | None,
    bias: Tensor | None,
    auto_pad: str,
    dilations: list[int] | None,
    group: int,
    pads: list[int] | None,
    strides: list[int] | None,
) -> Tensor:
    # Products of integers of 8 bits are exact in float64. The padding has the zero point, which is 0 here.
    operands = [ops.astype(_centered(t, z, 0), "float64") for t, z in ((x, x_zero_point), (w, w_zero_point))]
    wide = None if bias is None else ops.astype(bias, "float64")
    found = convolution(operands[0], operands[1], wide, auto_pad, dilations, group, pads, strides)
    return ops.astype(found, "int32")


@rule("ConvInteger")
def _conv_integer(
    x: Tensor,
    w: Tensor,
    x_zero_point: Tensor | None = None,
    w_zero_point: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    return _integer_convolution(x, x_zero_point, w, w_zero_point, None, auto_pad, dilations, group, pads, strides)


@rule("QLinearConv")
def _qlinear_conv(
    x: Tensor,
    x_scale: Fixed,
    x_zero_point: Tensor,
    w: Tensor,
    w_scale: Fixed,
    w_zero_point: Tensor,
    y_scale: Fixed,
    y_zero_point: Tensor,
    bias: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    sums = _integer_convolution(x, x_zero_point, w, w_zero_point, bias, auto_pad, dilations, group, pads, strides)
    by_channel = ops.reshape(w_scale, [-1, *[1] * (x.ndim - 2)]) if w_scale.size > 1 else ops.reshape(w_scale, [])
    return _requantized(sums, x_scale * by_channel / y_scale, y_zero_point)
