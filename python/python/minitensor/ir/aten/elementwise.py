"""Functions of elements with one, two or three operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ... import ops
from ..native import rule
from .promotion import Tensor, cast, is_float, promoted

#: Functions of one tensor that have the same name here. They compute in the dtype of the result.
UNARY = """
    acos acosh asin asinh atan atanh cos cosh digamma erf erfc exp exp2 expm1 lgamma log log10 log1p log2 mish positive
    reciprocal relu6 rsqrt selu sigmoid silu sin sinh sqrt tan tanh hardsigmoid hardswish log_sigmoid
"""
#: Functions that leave integers or bools as they are.
_UNARY_NUMBERS: dict[str, Callable[[Any], Tensor]] = {
    "abs": ops.abs,
    "ceil": ops.ceil,
    "floor": ops.floor,
    "neg": ops.negative,
    "relu": ops.relu,
    "round": ops.round,
    "sign": ops.sign,
    "square": ops.square,
    "trunc": ops.trunc,
}
#: Tests of elements.
_TESTS: dict[str, Callable[[Any], Tensor]] = {
    "isinf": ops.isinf,
    "isnan": ops.isnan,
    "isfinite": ops.isfinite,
    "logical_not": ops.logical_not,
    "signbit": ops.signbit,
}


def _unary(function: Callable[[Any], Tensor]) -> Callable[..., Tensor]:
    return lambda self, out_dtype: function(cast(self, out_dtype))


def _unary_number(function: Callable[[Any], Tensor]) -> Callable[..., Tensor]:
    def compute(self: Tensor, out_dtype: str) -> Tensor:
        # PyTorch has no negative bools; abs, sign and rounding do not change them.
        return self if out_dtype == "bool" else function(cast(self, out_dtype))

    return compute


def _test(function: Callable[[Any], Tensor]) -> Callable[..., Tensor]:
    def compute(self: Tensor) -> Tensor:
        is_number = self.dtype.name != "bool" or function is ops.logical_not
        return function(self) if is_number else function(ops.astype(self, "uint8"))

    return compute


for _name in UNARY.split():
    rule(_name)(_unary(getattr(ops, _name)))
for _name, _function in _UNARY_NUMBERS.items():
    rule(_name)(_unary_number(_function))
for _name, _function in _TESTS.items():
    rule(_name)(_test(_function))


@rule("bitwise_not")
def _bitwise_not(self: Tensor) -> Tensor:
    return ops.logical_not(self) if self.dtype.name == "bool" else ops.bitwise_not(self)


@rule("frac")
def _frac(self: Tensor) -> Tensor:
    return self - ops.trunc(self)


def _arithmetic(number: Callable[..., Tensor], boolean: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function of two operands in the dtype of the result, and the one for bools."""

    def compute(self: Any, other: Any, out_dtype: str) -> Tensor:
        a, b = cast(self, out_dtype), cast(other, out_dtype)
        return boolean(a, b) if out_dtype == "bool" else number(a, b)

    return compute


def _has_factor(attrs: Mapping[str, Any]) -> bool:
    return bool(attrs.get("alpha", 1) != 1)


def _scaled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A sum with the factor `alpha`."""

    def compute(self: Any, other: Any, out_dtype: str, alpha: float = 1) -> Tensor:
        b = cast(other, out_dtype)
        return function(self, b if alpha == 1 else cast(b * cast(alpha, out_dtype), out_dtype), out_dtype=out_dtype)

    return compute


_add = _arithmetic(ops.add, ops.logical_or)
_sub = _arithmetic(ops.subtract, ops.logical_xor)
_mul = _arithmetic(ops.multiply, ops.logical_and)
rule("add.Tensor", "add.Scalar", in_steps=_has_factor)(_scaled(_add))
rule("sub.Tensor", "sub.Scalar", in_steps=_has_factor)(_scaled(_sub))
rule("mul.Tensor", "mul.Scalar")(_mul)


@rule("rsub.Tensor", "rsub.Scalar", in_steps=_has_factor)
def _rsub(self: Any, other: Any, out_dtype: str, alpha: float = 1) -> Tensor:
    a = cast(self, out_dtype)
    return ops.subtract(cast(other, out_dtype), a if alpha == 1 else a * cast(alpha, out_dtype))


rule("maximum", "max.other")(_arithmetic(ops.maximum, ops.logical_or))
rule("minimum", "min.other")(_arithmetic(ops.minimum, ops.logical_and))
for _name, _number, _boolean in (
    ("bitwise_and", ops.bitwise_and, ops.logical_and),
    ("bitwise_or", ops.bitwise_or, ops.logical_or),
    ("bitwise_xor", ops.bitwise_xor, ops.logical_xor),
    ("bitwise_left_shift", ops.bitwise_left_shift, ops.logical_or),
    ("bitwise_right_shift", ops.bitwise_right_shift, ops.logical_or),
):
    _overloads = ("Tensor", "Tensor_Scalar" if "shift" in _name else "Scalar", "Scalar_Tensor")
    rule(*(f"{_name}.{overload}" for overload in _overloads))(_arithmetic(_number, _boolean))
for _name, _number in {
    "atan2": ops.atan2,
    "hypot": ops.hypot,
    "logaddexp": ops.logaddexp,
    "copysign.Tensor": ops.copysign,
    "copysign.Scalar": ops.copysign,
    "__and__.Tensor": ops.bitwise_and,
    "__or__.Tensor": ops.bitwise_or,
}.items():
    _boolean = {"__and__.Tensor": ops.logical_and, "__or__.Tensor": ops.logical_or}.get(_name, _number)
    rule(_name)(_arithmetic(_number, _boolean))


def _is_truncated(attrs: Mapping[str, Any]) -> bool:
    return attrs.get("rounding_mode") == "trunc"


@rule("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode", "true_divide.Tensor", in_steps=_is_truncated)
def _div(self: Any, other: Any, out_dtype: str, rounding_mode: str | None = None) -> Tensor:
    a, b = cast(self, out_dtype), cast(other, out_dtype)
    if rounding_mode == "floor":
        return ops.floor_divide(a, b)
    if rounding_mode == "trunc" and not is_float(out_dtype):
        # The quotient of the magnitudes is that of integers.
        positive = ops.floor_divide(ops.abs(a), ops.abs(cast_tensor(b, a)))
        return ops.where(
            ops.logical_xor(ops.less(a, 0), ops.less(cast_tensor(b, a), 0)), ops.negative(positive), positive
        )
    quotient = ops.divide(a, b)
    return ops.trunc(quotient) if rounding_mode == "trunc" else quotient


def cast_tensor(value: Any, like: Tensor) -> Tensor:
    """Returns a number as a tensor of the dtype of another tensor."""
    return value if isinstance(value, Tensor) else Tensor(value, dtype=like.dtype)


@rule("floor_divide", "floor_divide.Scalar")
def _floor_divide(self: Any, other: Any, out_dtype: str) -> Tensor:
    return ops.floor_divide(cast(self, out_dtype), cast(other, out_dtype))


@rule("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def _remainder(self: Any, other: Any, out_dtype: str) -> Tensor:
    return ops.remainder(cast(self, out_dtype), cast(other, out_dtype))


@rule("fmod.Tensor", "fmod.Scalar")
def _fmod(self: Tensor, other: Any, out_dtype: str) -> Tensor:
    a, b = cast(self, out_dtype), cast(other, out_dtype)
    if is_float(out_dtype):
        return ops.fmod(a, b)
    rest = ops.remainder(ops.abs(a), ops.abs(cast_tensor(b, a)))
    return ops.where(ops.less(a, 0), ops.negative(rest), rest)


@rule("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def _pow(self: Any, exponent: Any, out_dtype: str) -> Tensor:
    return ops.power(cast(self, out_dtype), cast(exponent, out_dtype))


def _comparison(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def compute(self: Tensor, other: Any) -> Tensor:
        dtype = promoted(self, other)
        a, b = cast(self, dtype), cast(other, dtype)
        return function(ops.astype(a, "uint8"), cast(b, "uint8")) if dtype == "bool" else function(a, b)

    return compute


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    rule(f"{_name}.Tensor", f"{_name}.Scalar")(_comparison(getattr(ops, _name)))


def _logical(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda self, other: function(cast(self, "bool"), cast(other, "bool"))


for _name in ("logical_and", "logical_or", "logical_xor"):
    rule(_name)(_logical(getattr(ops, _name)))


@rule("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def _where(condition: Tensor, self: Any, other: Any, out_dtype: str) -> Tensor:
    # Two numbers have no dtype of their own.
    a, b = cast(self, out_dtype), cast(other, out_dtype)
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        a = Tensor(a, dtype=out_dtype)
    return ops.where(cast(condition, "bool"), a, b)


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(self: Tensor, mask: Tensor, value: Any, out_dtype: str) -> Tensor:
    return ops.where(mask, cast(value, out_dtype), self)


@rule("clamp", "clamp.Tensor")
def _clamp(self: Tensor, out_dtype: str, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002 - the schema
    x = cast(self, out_dtype)
    if min is not None:
        x = ops.maximum(x, cast(min, out_dtype))
    return x if max is None else ops.minimum(x, cast(max, out_dtype))


@rule("clamp_min", "clamp_min.Tensor")
def _clamp_min(self: Tensor, min: Any, out_dtype: str) -> Tensor:  # noqa: A002 - the schema
    return ops.maximum(cast(self, out_dtype), cast(min, out_dtype))


@rule("clamp_max", "clamp_max.Tensor")
def _clamp_max(self: Tensor, max: Any, out_dtype: str) -> Tensor:  # noqa: A002 - the schema
    return ops.minimum(cast(self, out_dtype), cast(max, out_dtype))


@rule("addcmul", in_steps=True)
def _addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, out_dtype: str, value: float = 1) -> Tensor:
    product = ops.multiply(cast(tensor1, out_dtype), cast(tensor2, out_dtype))
    return ops.add(cast(self, out_dtype), product if value == 1 else product * cast(value, out_dtype))


@rule("addcdiv", in_steps=True)
def _addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, out_dtype: str, value: float = 1) -> Tensor:
    quotient = ops.divide(cast(tensor1, out_dtype), cast(tensor2, out_dtype))
    return ops.add(cast(self, out_dtype), quotient if value == 1 else quotient * cast(value, out_dtype))


@rule("lerp.Tensor", "lerp.Scalar")
def _lerp(self: Tensor, end: Tensor, weight: Any, out_dtype: str) -> Tensor:
    return ops.lerp(self, end, cast(weight, out_dtype))


@rule("xlogy.Tensor", "xlogy.Scalar_Other", in_steps=True)
def _xlogy(self: Tensor, other: Any, out_dtype: str) -> Tensor:
    a, b = cast(self, out_dtype), cast_tensor(other, self)
    product = a * ops.log(cast(b, out_dtype))
    is_zero = ops.logical_and(ops.eq(a, 0.0), ops.logical_not(ops.isnan(cast(b, out_dtype))))
    return ops.where(is_zero, 0.0, product)
