"""Products of matrices, determinants."""

from __future__ import annotations

from .... import _minitensor as mt
from .... import ops
from ....ir.aten.products import contraction
from ..error import OnnxError
from ..rule import rule
from ..values import Tensor


@rule("MatMul")
def _matmul(a: Tensor, b: Tensor) -> Tensor:
    return ops.matmul(a, b)


@rule("Gemm", since=7)
def _gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803 - in ONNX
    transB: int = 0,  # noqa: N803
) -> Tensor:
    x = ops.matrix_transpose(a) if transA else a
    found = ops.matmul(x, ops.matrix_transpose(b) if transB else b)
    found = found if alpha == 1 else ops.astype(found * alpha, a.dtype)
    if c is None or beta == 0:
        return found
    return found + (c if beta == 1 else ops.astype(c * beta, a.dtype))


@rule("Einsum")
def _einsum(*xs: Tensor, equation: str) -> Tensor:
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(xs):
        raise OnnxError(f"the equation '{equation}' has {len(terms)} operands, got {len(xs)}")
    # The axes of an ellipsis get letters that the equation does not use. The last axes of all operands agree.
    letters = [chr(c) for c in range(ord("A"), ord("z")) if chr(c).isalpha() and chr(c) not in equation]
    rank = 0
    for k, (term, x) in enumerate(zip(terms, xs, strict=True)):
        if "..." in term:
            count = x.ndim - len(term) + 3
            rank = max(rank, count)
            terms[k] = term.replace("...", "".join(letters[:count][::-1]))
    ellipsis = "".join(letters[:rank][::-1])
    if not arrow:
        names = "".join(terms)
        right = ellipsis + "".join(sorted(c for c in set(names) if names.count(c) == 1 and c not in ellipsis))
    return contraction(",".join(terms), right.replace("...", ellipsis), xs)


@rule("Det")
def _det(x: Tensor) -> Tensor:
    *batch, n, _ = x.shape
    rest = ops.reshape(x, [-1, n, n]) if x.size else x
    found = mt.ones(rest.shape[:1], dtype=x.dtype)
    if not x.size:
        return mt.ones(tuple(batch), dtype=x.dtype)
    # Gaussian elimination. The largest element of a column becomes its pivot.
    while n:
        column = ops.slice(rest, 2, 0, 1)
        at = ops.argmax(ops.abs(column), 1, True)
        row = ops.gather(rest, ops.expand(at, [rest.shape[0], 1, n]), 1)
        first = ops.slice(rest, 1, 0, 1)
        is_pivot = ops.eq(ops.reshape(mt.arange(n, dtype="int64"), [1, n, 1]), at)
        # The first row takes the place of the pivot row: the sign changes if they differ.
        rest = ops.where(is_pivot, first, rest)
        pivot = ops.slice(row, 2, 0, 1)
        sign = ops.where(ops.eq(at, 0), 1.0, -1.0)
        found = found * ops.reshape(ops.astype(sign, x.dtype) * pivot, [-1])
        is_zero = ops.eq(pivot, 0.0)
        factor = ops.slice(rest, 2, 0, 1) / ops.where(is_zero, ops.astype(1.0 + pivot * 0.0, x.dtype), pivot)
        rest = ops.slice(ops.slice(rest - factor * row, 1, 1, n), 2, 1, n)
        n -= 1
    return ops.reshape(found, batch)
