"""Products of matrices."""

from __future__ import annotations

from ..builder import Value
from ..call import Call
from ..rule import rule
from .conversion import in_dtype_of_result

__all__: list[str] = []


@rule("matmul", "linalg::matrix_product")
def matmul(call: Call) -> Value:
    x, y = in_dtype_of_result(call, "x", "y")
    return call.builder.node("MatMul", x, y)


@rule("linear")
def linear(call: Call) -> Value:
    x, weight, bias = in_dtype_of_result(call, "x", "weight", "bias")
    assert weight is not None
    product = call.builder.node("MatMul", x, weight.apply("Transpose", perm=[1, 0]))
    return product if bias is None else call.builder.node("Add", product, bias)
