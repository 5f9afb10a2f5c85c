"""Attention, and the rotary embedding of positions."""

from __future__ import annotations

import math

from .... import _minitensor as mt
from .... import ops
from ....ir.aten.products import repeated_heads
from ....ir.aten.promotion import cast
from ..elements import dtype_of
from ..error import OnnxError
from ..graph import Node
from ..rule import rule
from ..values import Tensor


def _heads(x: Tensor, count: int | None) -> Tensor:
    """Returns the axes batch, head, position, feature."""
    if x.ndim == 4:
        return x
    if not count:
        raise OnnxError("inputs with 3 axes need the attributes q_num_heads and kv_num_heads")
    batch, length, size = x.shape
    return ops.swapaxes(ops.reshape(x, [batch, length, count, size // count]), 1, 2)


@rule("Attention")
def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    nonpad_kv_seqlen: Tensor | None = None,
    *,
    node: Node,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> tuple[Tensor | None, ...]:
    is_flat = q.ndim == 3
    dtype = q.dtype.name
    q, k, v = _heads(q, q_num_heads), _heads(k, kv_num_heads), _heads(v, kv_num_heads)
    if past_key is not None and past_value is not None:
        k, v = ops.concat([past_key, k], 2), ops.concat([past_value, v], 2)
    present = k, v
    if q.shape[1] != k.shape[1]:
        k, v = (repeated_heads(x, q.shape[1] // k.shape[1]) for x in (k, v))
    # Both operands are scaled: their products may be too large for 16 bits.
    root = cast(mt.full((), math.sqrt(1.0 / math.sqrt(q.shape[-1]) if scale is None else scale)), dtype)
    scores = ops.matmul(q * root, ops.matrix_transpose(k * root))
    shown = scores
    if softcap:
        scores = ops.tanh(scores / softcap) * softcap
        shown = scores if qk_matmul_output_mode == 1 else shown
    before = 0 if past_key is None else past_key.shape[2]
    allowed = _allowed(scores.shape, before, nonpad_kv_seqlen, bool(is_causal), left_window_size, right_window_size)
    bias = _bias(attn_mask, allowed, scores.shape, dtype)
    if bias is not None:
        scores = scores + bias
    shown = scores if qk_matmul_output_mode == 2 else shown
    if softmax_precision is not None:
        scores = cast(scores, dtype_of(softmax_precision))
    if bias is None:
        weights = ops.softmax(scores, -1)
    else:
        # A query without any key is a row of zeros.
        is_empty = ops.eq(ops.amax(bias, -1, True), float("-inf"))
        weights = ops.softmax(ops.where(is_empty, ops.zeros_like(scores), scores), -1)
        weights = ops.where(is_empty, ops.zeros_like(weights), weights)
    weights = cast(weights, dtype)
    shown = weights if qk_matmul_output_mode == 3 else shown
    found = ops.matmul(weights, v)
    if is_flat:
        batch, heads, length, size = found.shape
        found = ops.reshape(ops.swapaxes(found, 1, 2), [batch, length, heads * size])
    return found, *present, shown if node.wants(3) else None


def _allowed(
    shape: tuple[int, ...], before: int, valid: Tensor | None, is_causal: bool, left: int, right: int
) -> Tensor | None:
    """Returns which keys a query may attend; None if it may attend all."""
    *_, queries, keys = shape
    key = mt.arange(keys, dtype="int64")
    query = ops.reshape(mt.arange(queries, dtype="int64"), [queries, 1])
    masks: list[Tensor] = []
    offset: int | Tensor = before
    if valid is not None:
        count = ops.reshape(valid, [-1, 1, 1, 1])
        offset = count - queries
        masks.append(ops.lt(key, count))
    position = query + offset
    if is_causal:
        masks.append(ops.le(key, position))
    if left >= 0:
        masks.append(ops.ge(key, position - left))
    if right >= 0:
        masks.append(ops.le(key, position + right))
    found = None
    for mask in masks:
        found = mask if found is None else ops.logical_and(found, mask)
    return found


def _bias(mask: Tensor | None, allowed: Tensor | None, shape: tuple[int, ...], dtype: str) -> Tensor | None:
    """Returns what is added to the scores: −∞ for keys that a query may not attend."""
    none = mt.full((), float("-inf"), dtype=dtype)
    zero = mt.zeros((), dtype=dtype)
    found = None
    if mask is not None:
        found = ops.where(mask, zero, none) if mask.dtype.name == "bool" else cast(mask, dtype)
        missing = shape[-1] - found.shape[-1]
        if missing > 0:
            found = ops.pad(found, [0, missing], float("-inf"))
    if allowed is None:
        return found
    other = ops.where(allowed, zero, none)
    return other if found is None else found + other


@rule("RotaryEmbedding")
def _rotary_embedding(
    x: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    position_ids: Tensor | None = None,
    *,
    interleaved: int = 0,
    num_heads: int | None = None,
    rotary_embedding_dim: int = 0,
) -> Tensor:
    shape = x.shape
    heads = _heads(x, num_heads)
    size = rotary_embedding_dim or heads.shape[-1]
    turned, rest = ops.slice(heads, -1, 0, size), ops.slice(heads, -1, size, heads.shape[-1])
    caches = [t if position_ids is None else ops.take(t, position_ids, 0) for t in (cos_cache, sin_cache)]
    # A row of angles for each position, for all heads.
    cos, sin = (ops.expand_dims(ops.slice(t, -1, 0, size // 2), 1) for t in caches)
    if interleaved:
        pairs = ops.reshape(turned, [*turned.shape[:-1], size // 2, 2])
        a, b = (ops.reshape(ops.slice(pairs, -1, k, k + 1), [*turned.shape[:-1], size // 2]) for k in (0, 1))
        found = ops.reshape(ops.stack([a * cos - b * sin, a * sin + b * cos], -1), turned.shape)
    else:
        a, b = ops.slice(turned, -1, 0, size // 2), ops.slice(turned, -1, size // 2, size)
        found = ops.concat([a * cos - b * sin, a * sin + b * cos], -1)
    found = ops.concat([found, rest], -1) if rest.shape[-1] else found
    return found if len(shape) == 4 else ops.reshape(ops.swapaxes(found, 1, 2), shape)
