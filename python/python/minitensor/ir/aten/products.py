"""Products of matrices, and attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import _minitensor as mt
from ... import ops
from ..native import rule
from .promotion import Tensor, cast


@rule("mm", "bmm")
def _mm(self: Tensor, mat2: Tensor) -> Tensor:
    return ops.matmul(self, mat2)


@rule("matmul")
def _matmul(self: Tensor, other: Tensor) -> Tensor:
    return ops.matmul(self, other)


@rule("dot", "vdot", when=lambda attrs: not attrs, in_steps=True)
def _dot(self: Tensor, tensor: Tensor | None = None, other: Tensor | None = None) -> Tensor:
    second = tensor if other is None else other
    assert second is not None
    return ops.sum(self * second)


@rule("mv")
def _mv(self: Tensor, vec: Tensor) -> Tensor:
    return ops.matmul(self, vec)


@rule("outer", "ger")
def _outer(self: Tensor, vec2: Tensor) -> Tensor:
    return ops.reshape(self, [-1, 1]) * vec2


def _sum(bias: Any, product: Tensor, beta: float, alpha: float, dtype: str) -> Tensor:
    scaled = product if alpha == 1 else product * cast(alpha, dtype)
    if beta == 0:
        return scaled
    return (bias if beta == 1 else bias * cast(beta, dtype)) + scaled  # type: ignore[no-any-return]


@rule("addmm", in_steps=True)
def _addmm(self: Tensor, mat1: Tensor, mat2: Tensor, out_dtype: str, beta: float = 1, alpha: float = 1) -> Tensor:
    return _sum(self, ops.matmul(mat1, mat2), beta, alpha, out_dtype)


@rule("baddbmm", in_steps=True)
def _baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, out_dtype: str, beta: float = 1, alpha: float = 1) -> Tensor:
    return _sum(self, ops.matmul(batch1, batch2), beta, alpha, out_dtype)


@rule("addmv", in_steps=True)
def _addmv(self: Tensor, mat: Tensor, vec: Tensor, out_dtype: str, beta: float = 1, alpha: float = 1) -> Tensor:
    return _sum(self, ops.matmul(mat, vec), beta, alpha, out_dtype)


@rule("linear", in_steps=True)
def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:  # noqa: A002 - the schema
    transposed = ops.matrix_transpose(weight) if weight.ndim > 1 else weight
    rows = math.prod(input.shape[:-1])
    if input.ndim > 2 and weight.ndim == 2:
        # One product of matrices, instead of one for each example.
        flat = ops.matmul(ops.reshape(input, [rows, input.shape[-1]]), transposed)
        product = ops.reshape(flat, [*input.shape[:-1], weight.shape[0]])
    else:
        product = ops.matmul(input, transposed)
    return product if bias is None else product + bias


@rule("scaled_dot_product_attention", when=lambda attrs: not attrs.get("dropout_p"), in_steps=True)
def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    dtype = query.dtype.name
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        key, value = (repeated_heads(x, query.shape[-3] // x.shape[-3]) for x in (key, value))
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    scores = ops.matmul(query * factor, ops.matrix_transpose(key))
    if is_causal:
        attn_mask = ops.tril(mt.ones(scores.shape[-2:], dtype="uint8")).astype("bool")
    if attn_mask is None:
        return ops.matmul(ops.softmax(scores, -1), value)
    if attn_mask.dtype.name == "bool":
        scores = ops.where(attn_mask, scores, float("-inf"))
    else:
        scores = scores + cast(attn_mask, dtype)
    # A row without any key is a row of zeros.
    is_empty = ops.eq(ops.amax(scores, -1, True), float("-inf"))
    weights = ops.softmax(ops.where(is_empty, 0.0, scores), -1)
    return ops.matmul(ops.where(is_empty, 0.0, weights), value)


def repeated_heads(x: Tensor, count: int) -> Tensor:
    """Repeats each head."""
    *batch, heads, length, size = x.shape
    wide = ops.expand(ops.expand_dims(x, -3), [*batch, heads, count, length, size])
    return ops.reshape(wide, [*batch, heads * count, length, size])


@rule("einsum", when=lambda attrs: "." not in str(attrs.get("equation")) and not attrs.get("path"), in_steps=True)
def _einsum(equation: str, tensors: Sequence[Tensor], path: Any = None) -> Tensor:
    left, arrow, right = equation.replace(" ", "").partition("->")
    if not arrow:
        letters = left.replace(",", "")
        right = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    return contraction(left, right, tensors)


def contraction(left: str, right: str, tensors: Sequence[Tensor]) -> Tensor:
    """Returns the sum of products that `left` and `right` of an equation describe: `ij,jk` and `ik`."""
    operands = left.split(",")
    names, product = _diagonals(operands[0], tensors[0])
    for i in range(1, len(operands)):
        later = set(right).union(*operands[i + 1 :])
        names, product = _contracted(names, product, *_diagonals(operands[i], tensors[i]), later)
    product, names = _summed(names, product, set(right))
    return ops.permute_dims(product, [names.index(c) for c in right]) if right else ops.reshape(product, [])


def _diagonals(names: str, x: Tensor) -> tuple[str, Tensor]:
    """Takes the diagonal of axes with equal names."""
    from .views import _diagonal

    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            a = names.index(name)
            b = names.index(name, a + 1)
            x = _diagonal(x, 0, a, b)
            names = "".join(c for i, c in enumerate(names) if i not in (a, b)) + name
    return names, x


def _summed(names: str, x: Tensor, kept: set[str]) -> tuple[Tensor, str]:
    axes = [i for i, c in enumerate(names) if c not in kept]
    return (ops.sum(x, axes) if axes else x), "".join(c for c in names if c in kept)


def _contracted(a: str, x: Tensor, b: str, y: Tensor, later: set[str]) -> tuple[str, Tensor]:
    """Returns the product of two tensors, summed over the names that do not occur later."""
    x, a = _summed(a, x, set(b) | later)
    y, b = _summed(b, y, set(a) | later)
    batch = [c for c in a if c in b and c in later]
    summed = [c for c in a if c in b and c not in later]
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]
    sizes = dict(zip(a, x.shape, strict=True)) | {c: s for c, s in zip(b, y.shape, strict=True) if s != 1 or c not in a}
    x = ops.permute_dims(x, [a.index(c) for c in (*batch, *rows, *summed)]) if a else x
    y = ops.permute_dims(y, [b.index(c) for c in (*batch, *summed, *columns)]) if b else y

    def count(group: list[str]) -> int:
        return math.prod(sizes[c] for c in group)

    product = ops.matmul(
        ops.reshape(x, [count(batch), count(rows), count(summed)]),
        ops.reshape(y, [count(batch), count(summed), count(columns)]),
    )
    names = [*batch, *rows, *columns]
    return "".join(names), ops.reshape(product, [sizes[c] for c in names])


@rule("_cdist_forward", in_steps=True)
def _cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None = None) -> Tensor:
    difference = ops.abs(ops.expand_dims(x1, -2) - ops.expand_dims(x2, -3))
    return _distance(difference, p)


@rule("_pdist_forward", in_steps=True)
def _pdist(self: Tensor, p: float = 2.0) -> Tensor:
    n = self.shape[0]
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    first, second = (mt.Tensor([pair[k] for pair in pairs], dtype="int64") for k in (0, 1))
    return _distance(ops.abs(ops.take(self, first, 0) - ops.take(self, second, 0)), p)


def _distance(difference: Tensor, p: float) -> Tensor:
    if p == 0:
        return ops.sum(ops.astype(ops.ne(difference, 0.0), difference.dtype), -1)
    if p == 1:
        return ops.sum(difference, -1)
    if p == 2:
        return ops.sqrt(ops.sum(ops.square(difference), -1))
    if math.isinf(p):
        return ops.amax(difference, -1)
    return ops.power(ops.sum(ops.power(difference, p), -1), 1.0 / p)
