"""Random numbers, and what else ONNX cannot compute."""

from __future__ import annotations

from typing import NoReturn

from ..builder import Value
from ..call import Call
from ..rule import Refused, rule

__all__: list[str] = []


@rule("random::uniform", "random::normal", "random::integers", "random::dropout", "rand_like", only_moves=True)
def random(call: Call) -> NoReturn:
    raise call.error(
        "it draws random numbers, which a runtime would draw differently",
        "export the model in evaluation mode, or pass the random numbers as an argument",
    )


@rule("dropout", only_moves=True)
def dropout(call: Call) -> Value:
    if call.plain("training") and call.plain("p") > 0:
        random(call)
    return call["x"].apply("Identity")


@rule("complex", "imag", only_moves=True)
def complex_(call: Call) -> NoReturn:
    raise Refused("ONNX has no ops of complex numbers")


@rule("row::prod_of_others")
def product_of_others(call: Call) -> Value:
    x, b = call["x"], call.builder
    if x.dtype.startswith("complex"):
        raise Refused("ONNX has no arithmetic of complex numbers")
    # A row for each element, with 1 in its place.
    size = b.node("Squeeze", b.shape(x, -1), b.integers([0]))
    positions = b.node("Range", b.constant(0, "int64"), size, b.constant(1, "int64"))
    is_own = positions.equal(b.node("Unsqueeze", positions, b.integers([1])))
    others = b.where(is_own, 1, b.node("Unsqueeze", x, b.integers([-2])))
    return b.node("ReduceProd", others, b.integers([-1]), keepdims=0)
