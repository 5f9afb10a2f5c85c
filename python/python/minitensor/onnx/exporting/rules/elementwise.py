"""Functions of elements that are ops of ONNX. All others are exported by their programs."""

from __future__ import annotations

from collections.abc import Callable

from .. import dtypes
from ..builder import Value
from ..call import Call
from ..primitives import PRIMITIVES, truthy
from ..rule import Refused, rule

__all__: list[str] = []

_FLOATS = ("float32", "float64")
_NUMBERS = (*_FLOATS, *dtypes.INTEGERS)

#: The op of ONNX, and the dtypes in which it is used.
_SAME: dict[str, tuple[str, tuple[str, ...]]] = {
    "abs": ("Abs", _NUMBERS),
    "acos": ("Acos", ("float32",)),
    "acosh": ("Acosh", ("float32",)),
    "add": ("Add", _NUMBERS),
    "asin": ("Asin", ("float32",)),
    "asinh": ("Asinh", ("float32",)),
    "atan": ("Atan", ("float32",)),
    "atanh": ("Atanh", ("float32",)),
    "bitwise_and": ("BitwiseAnd", dtypes.INTEGERS),
    "bitwise_invert": ("BitwiseNot", dtypes.INTEGERS),
    "bitwise_or": ("BitwiseOr", dtypes.INTEGERS),
    "bitwise_xor": ("BitwiseXor", dtypes.INTEGERS),
    "ceil": ("Ceil", _FLOATS),
    "cos": ("Cos", _FLOATS),
    "cosh": ("Cosh", ("float32",)),
    "divide": ("Div", _FLOATS),
    "erf": ("Erf", ("float32",)),
    "exp": ("Exp", _FLOATS),
    "floor": ("Floor", _FLOATS),
    "log": ("Log", _FLOATS),
    "maximum": ("Max", _NUMBERS),
    "minimum": ("Min", _NUMBERS),
    "mish": ("Mish", ("float32",)),
    "multiply": ("Mul", _NUMBERS),
    "positive": ("Identity", _NUMBERS),
    "reciprocal": ("Reciprocal", _FLOATS),
    "relu": ("Relu", (*_FLOATS, "int8", "int32")),
    "round": ("Round", _FLOATS),
    "sigmoid": ("Sigmoid", _FLOATS),
    "sin": ("Sin", _FLOATS),
    "sinh": ("Sinh", ("float32",)),
    "softplus": ("Softplus", ("float32",)),
    "softsign": ("Softsign", ("float32",)),
    "sqrt": ("Sqrt", _FLOATS),
    "subtract": ("Sub", _NUMBERS),
    "tan": ("Tan", ("float32",)),
    "tanh": ("Tanh", _FLOATS),
}
#: Formulas of programs that are short enough to be written in place.
_IN_PLACE: dict[str, tuple[str, tuple[str, ...]]] = {
    "isfinite": ("isfinite", _FLOATS),
    "isinf": ("isinf", _FLOATS),
    "isnan": ("isnan", _FLOATS),
    "negative": ("negative", _NUMBERS),
    "rsqrt": ("rsqrt", _FLOATS),
    "square": ("square", _NUMBERS),
}
#: Comparisons, with the op of ONNX.
_COMPARISONS = {
    "equal": "Equal",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "less": "Less",
    "less_equal": "LessOrEqual",
}


def _expect(dtype: str, admitted: tuple[str, ...]) -> None:
    if dtype not in admitted:
        raise Refused(f"ONNX has no such op for {dtype}")


def _of(function: Callable[..., Value], admitted: tuple[str, ...]) -> Callable[[Call], Value]:
    def write(call: Call) -> Value:
        operands = call.operands()
        _expect(operands[0].dtype, admitted)
        return function(*operands)

    return write


for _name, (_op, _admitted) in _SAME.items():
    rule(_name)(_of(lambda x, *others, op=_op: x.apply(op, *others), _admitted))
for _name, (_primitive, _admitted) in _IN_PLACE.items():
    rule(_name)(_of(PRIMITIVES[_primitive], _admitted))
for _name, _op in _COMPARISONS.items():
    rule(_name)(_of(lambda x, y, op=_op: x.apply(op, y, dtype="bool"), _NUMBERS))


@rule("not_equal")
def not_equal(call: Call) -> Value:
    x, y = call.operands()
    _expect(x.dtype, _NUMBERS)
    return ~x.equal(y)


@rule("logical_and")
def logical_and(call: Call) -> Value:
    x, y = _truths(call)
    return x & y


@rule("logical_or")
def logical_or(call: Call) -> Value:
    x, y = _truths(call)
    return x | y


@rule("logical_xor")
def logical_xor(call: Call) -> Value:
    x, y = _truths(call)
    return x ^ y


@rule("logical_not")
def logical_not(call: Call) -> Value:
    [x] = _truths(call)
    return ~x


def _truths(call: Call) -> list[Value]:
    return [truthy(x) for x in call.operands()]


@rule("power")
def power(call: Call) -> Value:
    x, y = call.operands()
    _expect(x.dtype, _FLOATS)
    return x.apply("Pow", y)


@rule("where", only_moves=True)
def where(call: Call) -> Value:
    dtype = call.computed_dtype()
    mask, x, y = (call.tensor(i, dtype) for i in range(3))
    return call.builder.where(mask, x.cast(dtype), y.cast(dtype))


@rule("clamp")
def clamp(call: Call) -> Value:
    [x] = call.operands()
    _expect(x.dtype, _NUMBERS)
    bounds = [call.builder.number(call.plain(name), x.dtype) for name in ("lo", "hi")]
    return call.builder.node("Clip", x, *bounds)


@rule("leaky_relu")
def leaky_relu(call: Call) -> Value:
    [x] = call.operands()
    _expect(x.dtype, ("float32",))
    return x.apply("LeakyRelu", alpha=float(call.plain("negative_slope")))


@rule("gelu")
def gelu(call: Call) -> Value:
    [x] = call.operands()
    _expect(x.dtype, ("float32",))
    return x.apply("Gelu", approximate=call.plain("approximate"))
