"""The functions of numbers of programs, as nodes of ONNX: one table.

Numbers are float32, float64 or integers. The formulas keep the special cases of minitensor, but not the sign of NaN,
which no op of ONNX reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import dtypes, special
from .builder import Value

__all__ = ["PRIMITIVES", "number"]


def number(op: str) -> Callable[..., Value]:
    """The op of ONNX as a function of numbers."""
    return lambda x, *others: x.apply(op, *others)


def _test(op: str) -> Callable[..., Value]:
    return lambda x, *others: x.apply(op, *others, dtype="bool")


def _in_double(name: str, function: Callable[..., Value]) -> Callable[..., Value]:
    """A function that is computed in float64, as a function of the model."""

    def apply(x: Value, *arguments: int) -> Value:
        suffix = "".join(f"_{argument}" for argument in arguments)
        wide = x.cast("float64")
        return x.builder.call(name + suffix, lambda v: function(v, *arguments), wide).cast(x.dtype)

    return apply


def _is_integer(x: Value) -> bool:
    return x.dtype in dtypes.INTEGERS


def _of_floats(function: Callable[..., Value], integers: Callable[..., Value]) -> Callable[..., Value]:
    """A function with another formula for integers."""
    return lambda x, *others: (integers if _is_integer(x) else function)(x, *others)


def _same(x: Value) -> Value:
    return x


def _never(x: Value) -> Value:
    return ~x.equal(x)


def chain(derivative: Value, tangent: Value) -> Value:
    """A derivative times a tangent. It is 0 if the tangent is 0, even if the derivative is infinite."""
    return derivative.builder.where(tangent.equal(0), tangent, derivative * tangent)


def truthy(x: Value) -> Value:
    return x if x.dtype == "bool" else ~x.equal(0)


def select(mask: Value, x: Value, y: Value) -> Value:
    if x.dtype == "bool":
        return (mask & x) | (~mask & y)
    return mask.builder.where(mask, x, y)


def signbit(x: Value) -> Value:
    """Whether the sign bit is set: −0 is the zero whose reciprocal is −∞."""
    return (x < 0) if _is_integer(x) else (x < 0) | (x.equal(0) & ((1.0 / x) < 0))


def copysign(x: Value, y: Value) -> Value:
    # A product: runtimes lose the sign of a zero that they select.
    return abs(x) * x.builder.where(signbit(y), -1, 1, x.dtype)


def sign(x: Value) -> Value:
    where = x.builder.where
    return where(x < 0, -1, where(x > 0, 1, x))


def trunc(x: Value) -> Value:
    return abs(x).apply("Floor") * x.builder.where(x < 0, -1, 1, x.dtype)


def fmod(x: Value, y: Value) -> Value:
    return x.builder.node("Mod", x, y, fmod=1)


def floor_divide(x: Value, y: Value) -> Value:
    where = x.builder.where
    rest = fmod(x, y)
    whole = (x - rest) / y
    is_below = ~rest.equal(0) & ((rest < 0) ^ (y < 0))
    whole = where(is_below, whole - 1.0, whole)
    # `whole` is an integer except for its own rounding error.
    floor = whole.apply("Floor")
    floor = where((whole - floor) > 0.5, floor + 1.0, floor)
    ratio = x / y
    return where(y.equal(0), ratio, where(whole.equal(0), copysign(0.0 * abs(floor), ratio), floor))


def remainder(x: Value, y: Value) -> Value:
    where = x.builder.where
    rest = fmod(x, y)
    shifted = where((rest < 0) ^ (y < 0), rest + y, rest)
    return where(rest.equal(0), copysign(rest, y), shifted)


def _divisor(y: Value) -> Value:
    """The divisor of integers, without 0 and −1: these would stop the process."""
    is_unsafe = y.equal(0) if y.dtype in dtypes.UNSIGNED else y.equal(0) | y.equal(-1)
    return y.builder.where(is_unsafe, 1, y)


def integer_floor_divide(x: Value, y: Value) -> Value:
    """`⌊x / y⌋`; 0 if the divisor is 0."""
    where, divisor = x.builder.where, _divisor(y)
    quotient = x / divisor
    if y.dtype not in dtypes.UNSIGNED:
        rest = x - quotient * divisor
        is_below = ~rest.equal(0) & ((rest < 0) ^ (divisor < 0))
        quotient = where(y.equal(-1), -x, where(is_below, quotient - 1, quotient))
    return where(y.equal(0), 0, quotient)


def integer_remainder(x: Value, y: Value) -> Value:
    """`x − y·⌊x / y⌋`; 0 if the divisor is 0."""
    return x.builder.where(y.equal(0), 0, x - y * integer_floor_divide(x, y))


def power(x: Value, y: Value) -> Value:
    return x.apply("Pow", y)


def integer_power(x: Value, y: Value) -> Value:
    """`x` to the power `y`. A negative power is rounded towards 0."""
    builder = x.builder
    if x.dtype in dtypes.UNSIGNED:
        return x.apply("Pow", y)
    is_odd = ~(y & 1).equal(0)
    negative = builder.where(x.equal(1) | (x.equal(-1) & ~is_odd), 1, builder.where(x.equal(-1), -1, x * 0))
    return builder.where(y < 0, negative, x.apply("Pow", builder.where(y < 0, 0, y)))


def powi(x: Value, exponent: int) -> Value:
    """`x` to an integer power; that of an integer by repeated multiplication, which wraps around."""
    if not _is_integer(x):
        return x.apply("Pow", float(exponent))
    if exponent < 0:
        return integer_power(x, x.builder.number(exponent, x.dtype))
    found, base = x.builder.number(1, x.dtype), x
    while exponent:
        if exponent & 1:
            found = found * base
        base, exponent = base * base, exponent >> 1
    return found


def _bits(x: Value) -> Value:
    """The same bits as an unsigned integer."""
    return x.cast(x.dtype if x.dtype in dtypes.UNSIGNED else f"u{x.dtype}")


def _shifted(x: Value, y: Value, direction: str) -> Value:
    """The bits of `x`, shifted by `y`; 0 if no bit stays."""
    size = np.iinfo(x.dtype).bits
    is_outside = y >= size if y.dtype in dtypes.UNSIGNED else (y >= size) | (y < 0)
    counts = _bits(y.builder.where(is_outside, 0, y))
    found = x.builder.node("BitShift", _bits(x), counts, direction=direction).cast(x.dtype)
    return x.builder.where(is_outside, 0, found)


def left_shift(x: Value, y: Value) -> Value:
    return _shifted(x, y, "LEFT")


def right_shift(x: Value, y: Value) -> Value:
    """`⌊x / 2ʸ⌋`. For a negative number, the complement is shifted."""
    if x.dtype in dtypes.UNSIGNED:
        return _shifted(x, y, "RIGHT")
    where, is_negative = x.builder.where, x < 0
    found = _shifted(where(is_negative, ~x, x), y, "RIGHT")
    return where(is_negative, ~found, found)


def expm1(x: Value) -> Value:
    """`eˣ − 1` as `tanh(x/2) (eˣ + 1)`, without cancellation."""
    return (x * 0.5).apply("Tanh") * (x.apply("Exp") + 1.0)


def log1p(x: Value) -> Value:
    """`ln(1 + x)`, corrected by the rounding error of `1 + x`."""
    where = x.builder.where
    shifted = x + 1.0
    found = shifted.apply("Log") * (x / (shifted - 1.0))
    return where(shifted.equal(1.0), x, where(shifted.equal(math.inf), shifted, found))


def cbrt(x: Value) -> Value:
    """The real cube root: a power, and one step of Newton's method."""
    size = abs(x)
    root = size.apply("Pow", 1 / 3)
    root = root - (root - size / (root * root)) / 3.0
    return copysign(x.builder.where(size.equal(0.0) | size.isinf(), size, root), x)


def sigmoid(x: Value) -> Value:
    """`1 / (1 + e⁻ˣ)`. Runtimes compute their Sigmoid with less accuracy in the tails."""
    return 1.0 / ((-x).apply("Exp") + 1.0)


def silu(x: Value) -> Value:
    # −∞ · 0 is NaN, but the limit is −0.
    return x.builder.where(x.equal(-math.inf), -0.0, x * sigmoid(x))


def softplus(x: Value) -> Value:
    return x.apply("Max", 0.0) + log1p((-abs(x)).apply("Exp"))


def logaddexp(x: Value, y: Value) -> Value:
    # ∞ − ∞ is NaN.
    found = x.apply("Max", y) + log1p((-abs(x - y)).apply("Exp"))
    return x.builder.where(x.equal(y), x + math.log(2), found)


def hypot(x: Value, y: Value) -> Value:
    where = x.builder.where
    x, y = abs(x), abs(y)
    large, small = x.apply("Max", y), x.apply("Min", y)
    ratio = small / large
    found = where(large.equal(0.0), 0.0, large * (ratio * ratio + 1.0).apply("Sqrt"))
    return where(x.isinf() | y.isinf(), math.inf, found)


def atan2(y: Value, x: Value) -> Value:
    where = x.builder.where
    rise, run = abs(y), abs(x)
    ratio = where(rise.equal(0.0) & run.equal(0.0), 0.0, rise / run)
    ratio = where(rise.isinf() & run.isinf(), 1.0, ratio)
    angle = _ATAN(ratio)
    return copysign(where(signbit(x), math.pi - angle, angle), y)


def _double(native: str, name: str, function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """The op of ONNX, or a function of the model for float64, which onnxruntime does not compute this op in."""
    return lambda x: x.builder.call(name, function, x) if x.dtype == "float64" else x.apply(native)


def _tan(x: Value) -> Value:
    return x.apply("Sin") / x.apply("Cos")


def _atan(x: Value) -> Value:
    """The angle in float32, and the difference to it: `tan(a − b) = (tan a − tan b) / (1 + tan a tan b)`."""
    where = x.builder.where
    is_large = abs(x) > 1.0
    near = where(is_large, 1.0 / x, x)
    angle = near.cast("float32").apply("Atan").cast("float64")
    sine, cosine = angle.apply("Sin"), angle.apply("Cos")
    angle = angle + (near * cosine - sine) / (cosine + near * sine)
    return where(is_large, copysign(angle * 0.0 + math.pi / 2, x) - angle, angle)


_ATAN = _double("Atan", "atan", _atan)


def _asin(x: Value) -> Value:
    return _ATAN(x / ((1.0 - x) * (x + 1.0)).apply("Sqrt"))


def _acos(x: Value) -> Value:
    # The half angle: arccos x = 2 arctan √((1 − x) / (1 + x)).
    return 2.0 * _ATAN(((1.0 - x) / (x + 1.0)).apply("Sqrt"))


def _sinh(x: Value) -> Value:
    where, size = x.builder.where, abs(x)
    e = expm1(size)
    near = (e + e / (e + 1.0)) * 0.5
    half = (size * 0.5).apply("Exp")
    return copysign(where(size < 20.0, near, half * 0.5 * half), x)


def _cosh(x: Value) -> Value:
    half = (abs(x) * 0.5).apply("Exp")
    return half * 0.5 * half + 0.5 / half / half


def _asinh(x: Value) -> Value:
    where, size = x.builder.where, abs(x)
    square = size * size
    near = log1p(size + square / ((square + 1.0).apply("Sqrt") + 1.0))
    return copysign(where(size > 1e8, size.apply("Log") + math.log(2), near), x)


def _acosh(x: Value) -> Value:
    t = x - 1.0
    near = log1p(t + (t * 2.0 + t * t).apply("Sqrt"))
    found = x.builder.where(x > 1e8, x.apply("Log") + math.log(2), near)
    return x.builder.where(x < 1.0, math.nan, found)


def _atanh(x: Value) -> Value:
    size = abs(x)
    return copysign(log1p(size * 2.0 / (1.0 - size)) * 0.5, x)


_erfc = _in_double("erfc", special.erfc)

#: The functions of programs that are computed for each element.
PRIMITIVES: dict[str, Callable[..., Any]] = {
    "abs": number("Abs"),
    "acos": _double("Acos", "acos", _acos),
    "acosh": _double("Acosh", "acosh", _acosh),
    "add": number("Add"),
    "and": _test("And"),
    "asin": _double("Asin", "asin", _asin),
    "asinh": _double("Asinh", "asinh", _asinh),
    "atan": _ATAN,
    "atan2": atan2,
    "atanh": _double("Atanh", "atanh", _atanh),
    "bfloat16": lambda x: x.cast("bfloat16").cast(x.dtype),
    "bitwise_and": number("BitwiseAnd"),
    "bitwise_invert": number("BitwiseNot"),
    "bitwise_or": number("BitwiseOr"),
    "bitwise_xor": number("BitwiseXor"),
    "cbrt": cbrt,
    "ceil": _of_floats(number("Ceil"), _same),
    "chain": chain,
    "conj": _same,
    "copysign": copysign,
    "cos": number("Cos"),
    "cosh": _double("Cosh", "cosh", _cosh),
    "detach": _same,
    "digamma": _in_double("digamma", special.digamma),
    "divide": number("Div"),
    "equal": _test("Equal"),
    "erf": _double("Erf", "erf", special.erf),
    "erfc": _erfc,
    "exp": number("Exp"),
    "exp2": lambda x: x.builder.number(2.0, x.dtype).apply("Pow", x),
    "expm1": expm1,
    "float16": lambda x: x.cast("float16").cast(x.dtype),
    "floor": _of_floats(number("Floor"), _same),
    "floor_divide": _of_floats(floor_divide, integer_floor_divide),
    "fmod": fmod,
    "hypot": hypot,
    "isfinite": lambda x: abs(x) < math.inf,
    "isinf": _of_floats(_test("IsInf"), _never),
    "isnan": _of_floats(_test("IsNaN"), _never),
    "left_shift": left_shift,
    "less": _test("Less"),
    "less_equal": _test("LessOrEqual"),
    "lgamma": _in_double("lgamma", special.lgamma),
    "log": number("Log"),
    "log10": lambda x: x.apply("Log") / math.log(10),
    "log1p": log1p,
    "log2": lambda x: x.apply("Log") / math.log(2),
    "log_sigmoid": lambda x: x.apply("Min", 0.0) - log1p((-abs(x)).apply("Exp")),
    "logaddexp": logaddexp,
    "maximum": number("Max"),
    "minimum": number("Min"),
    "mul_add": lambda x, y, z: x * y + z,
    "multiply": number("Mul"),
    "negative": lambda x: -x,
    "normal_cdf": lambda x: _erfc(x * -math.sqrt(0.5)) * 0.5,
    "normal_pdf": lambda x: (x * x * -0.5).apply("Exp") * math.sqrt(0.5 / math.pi),
    "not": _test("Not"),
    "or": _test("Or"),
    "polygamma": _in_double("polygamma", special.polygamma),
    "pow": _of_floats(power, integer_power),
    "powi": powi,
    "recip": number("Reciprocal"),
    "remainder": _of_floats(remainder, integer_remainder),
    "right_shift": right_shift,
    "round": _of_floats(number("Round"), _same),
    "rsqrt": lambda x: x.apply("Sqrt").apply("Reciprocal"),
    "select": select,
    "sigmoid": sigmoid,
    "sign": _of_floats(sign, number("Sign")),
    "signbit": signbit,
    "silu": silu,
    "sin": number("Sin"),
    "sinh": _double("Sinh", "sinh", _sinh),
    "softplus": softplus,
    "sqrt": number("Sqrt"),
    "square": lambda x: x * x,
    "subtract": number("Sub"),
    "tan": _double("Tan", "tan", _tan),
    "tanh": number("Tanh"),
    "trunc": _of_floats(trunc, _same),
    "truthy": truthy,
}
