"""Functions of elements with one, two or more operands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import _minitensor as mt
from .... import ops
from ....ir.aten.promotion import cast
from ..elements import dtype_of, format_of
from ..narrow import NarrowTensor, rounded
from ..rule import rule
from ..values import Known, Tensor, Value, is_text, tensor

#: Functions of one tensor of floats.
_UNARY: dict[str, Callable[[Any], Tensor]] = {
    "Abs": ops.abs,
    "Acos": ops.acos,
    "Acosh": ops.acosh,
    "Asin": ops.asin,
    "Asinh": ops.asinh,
    "Atan": ops.atan,
    "Atanh": ops.atanh,
    "Ceil": ops.ceil,
    "Cos": ops.cos,
    "Cosh": ops.cosh,
    "Erf": ops.erf,
    "Exp": ops.exp,
    "Floor": ops.floor,
    "IsNaN": ops.isnan,
    "Log": ops.log,
    "Neg": ops.negative,
    "Not": ops.logical_not,
    "BitwiseNot": ops.bitwise_not,
    "Reciprocal": ops.reciprocal,
    "Round": ops.round,
    "Sigmoid": ops.sigmoid,
    "Sign": ops.sign,
    "Sin": ops.sin,
    "Sinh": ops.sinh,
    "Sqrt": ops.sqrt,
    "Tan": ops.tan,
    "Tanh": ops.tanh,
}
#: Functions of two tensors of one dtype, which are broadcast.
_BINARY: dict[str, Callable[[Any, Any], Tensor]] = {
    "Add": ops.add,
    "And": ops.logical_and,
    "BitwiseAnd": ops.bitwise_and,
    "BitwiseOr": ops.bitwise_or,
    "BitwiseXor": ops.bitwise_xor,
    "Greater": ops.gt,
    "GreaterOrEqual": ops.ge,
    "Less": ops.lt,
    "LessOrEqual": ops.le,
    "Mul": ops.multiply,
    "Or": ops.logical_or,
    "Sub": ops.subtract,
    "Xor": ops.logical_xor,
}
#: Functions of any number of tensors.
_VARIADIC: dict[str, Callable[[Any, Any], Tensor]] = {"Max": ops.maximum, "Min": ops.minimum, "Sum": ops.add}


def _unary(function: Callable[[Any], Tensor]) -> Callable[..., Tensor]:
    def compute(x: Tensor) -> Tensor:
        # Some functions of integers compute floats.
        found = function(x)
        return found if found.dtype.name in (x.dtype.name, "bool") else ops.astype(found, x.dtype)

    return compute


def _binary(function: Callable[[Any, Any], Tensor]) -> Callable[..., Tensor]:
    def compute(a: Tensor, b: Tensor) -> Tensor:
        return function(a, b)

    return compute


def _variadic(function: Callable[[Any, Any], Tensor]) -> Callable[..., Tensor]:
    def compute(*xs: Tensor) -> Tensor:
        return functools.reduce(function, xs)

    return compute


for _name, _function in _UNARY.items():
    rule(_name)(_unary(_function))
for _name, _two in _BINARY.items():
    # Before, an attribute said how tensors are broadcast.
    rule(_name, since=7)(_binary(_two))
for _name, _two in _VARIADIC.items():
    rule(_name, since=8)(_variadic(_two))


@rule("Mean", since=8)
def _mean(*xs: Tensor) -> Tensor:
    return functools.reduce(ops.add, xs) / float(len(xs))


@rule("Equal", since=7)
def _equal(a: Value, b: Value) -> Value:
    if is_text(a) and is_text(b):
        return np.asarray(a == b, dtype=bool)
    return ops.eq(tensor(a), tensor(b))


@rule("Div", since=7)
def _divide(a: Tensor, b: Tensor) -> Tensor:
    return ops.divide(a, b) if a.dtype.is_floating_point else _truncated_quotient(a, b)


def _truncated_quotient(a: Tensor, b: Tensor) -> Tensor:
    """Returns the quotient of integers, rounded to zero."""
    quotient = ops.floor_divide(a, b)
    if a.dtype.kind == "unsigned":
        return quotient
    is_rounded = ops.logical_and(ops.ne(quotient * b, a), ops.lt(quotient, 0))
    return ops.where(is_rounded, quotient + 1, quotient)


@rule("Mod", since=10)
def _mod(a: Tensor, b: Tensor, *, fmod: int = 0) -> Tensor:
    if not a.dtype.is_floating_point:
        return a - _truncated_quotient(a, b) * b if fmod else ops.remainder(a, b)
    found = ops.fmod(a, b)
    if fmod:
        return found
    is_other_sign = ops.logical_and(ops.ne(found, 0.0), ops.logical_xor(ops.lt(found, 0.0), ops.lt(b, 0.0)))
    found = ops.where(is_other_sign, found + b, found)
    return ops.where(ops.eq(found, 0.0), ops.copysign(ops.zeros_like(found), b), found)


@rule("Pow", since=7)
def _pow(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype.is_floating_point or not y.dtype.is_floating_point:
        return ops.power(x, cast(y, x.dtype.name))
    return ops.astype(ops.power(ops.astype(x, "float64"), ops.astype(y, "float64")), x.dtype)


@rule("BitShift", since=11)
def _bit_shift(x: Tensor, y: Tensor, *, direction: str) -> Tensor:
    bits = 8 * x.dtype.itemsize
    is_signed = x.dtype.kind == "signed"
    is_inside = ops.lt(y, bits)
    if is_signed:
        is_inside = ops.logical_and(is_inside, ops.ge(y, 0))
    by = ops.where(is_inside, y, ops.zeros_like(y))
    if direction == "LEFT":
        return ops.where(is_inside, ops.bitwise_left_shift(x, by), ops.zeros_like(x))
    # Beyond all bits, copies of the sign remain.
    beyond = ops.bitwise_right_shift(x, ops.zeros_like(x) + (bits - 1)) if is_signed else ops.zeros_like(x)
    return ops.where(is_inside, ops.bitwise_right_shift(x, by), beyond)


@rule("Clip", since=11)
def _clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    found = x if low is None else ops.maximum(x, low)
    return found if high is None else ops.minimum(found, high)


@rule("Clip", since=6)
def _clip_6(x: Tensor, *, min: float | None = None, max: float | None = None) -> Tensor:  # noqa: A002 - in ONNX
    found = x if min is None else ops.maximum(x, min)
    return found if max is None else ops.minimum(found, max)


@rule("Where")
def _where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return ops.where(condition, x, y)


@rule("IsInf")
def _is_inf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    found = ops.isinf(x)
    if not detect_negative:
        found = ops.logical_and(found, ops.gt(x, 0.0))
    return found if detect_positive else ops.logical_and(found, ops.lt(x, 0.0))


@rule("Cast", since=6)
def _cast(x: Value, *, to: int, saturate: int = 1, round_mode: str = "up") -> Value:
    from .strings import STRING, as_numbers, as_text

    if to == STRING:
        return as_text(x)
    if is_text(x):
        return as_numbers(x, dtype_of(to))
    wanted = format_of(to)
    if isinstance(x, NarrowTensor):
        if wanted is x.format:
            return x
        x = x.values
    x = tensor(x)
    return cast(x, dtype_of(to)) if wanted is None else rounded(x, wanted, bool(saturate), round_mode)


@rule("CastLike")
def _cast_like(x: Value, target_type: Value, *, saturate: int = 1, round_mode: str = "up") -> Value:
    from .strings import as_numbers, as_text

    if is_text(target_type):
        return as_text(x)
    if isinstance(target_type, NarrowTensor):
        plain = x.values if isinstance(x, NarrowTensor) else tensor(x)
        return rounded(plain, target_type.format, bool(saturate), round_mode)
    dtype = target_type.dtype.name
    if is_text(x):
        return as_numbers(x, dtype)
    return cast(x.values if isinstance(x, NarrowTensor) else tensor(x), dtype)


@rule("BitCast")
def _bit_cast(x: Known, *, to: int) -> Tensor:
    dtype = dtype_of(to)
    if dtype == "bfloat16":
        import ml_dtypes

        return Tensor(x.view(ml_dtypes.bfloat16))
    source = x.astype("uint8") if x.dtype == bool else x
    found = source.astype(bool) if dtype == "bool" else np.ascontiguousarray(source).reshape(x.shape).view(dtype)
    return tensor(found)


@rule("Dropout", since=12)
def _dropout(data: Tensor, ratio: Known | None = None, training_mode: Known | None = None) -> tuple[Value, ...]:
    p = 0.5 if ratio is None else float(ratio.item())
    if training_mode is None or not training_mode.item() or p == 0:
        return data, mt.full(data.shape, True, dtype="bool")
    is_kept = ops.ge(mt.rand(data.shape, dtype="float32"), p)
    return ops.where(is_kept, data / (1.0 - p), ops.zeros_like(data)), is_kept


@rule("Dropout", since=7)
def _dropout_7(data: Tensor, *, ratio: float = 0.5) -> tuple[Value, ...]:
    return data, mt.full(data.shape, True, dtype="bool")
