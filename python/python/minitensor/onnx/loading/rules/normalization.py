"""Normalization over rows, groups, batches and neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .... import ops
from ....ir.aten.promotion import cast
from ..graph import Node
from ..rule import rule
from ..values import Fixed, Tensor


def _by_channel(x: Tensor, rank: int) -> Tensor:
    """Returns numbers of channels in a shape that is broadcast to images."""
    return ops.reshape(x, [1, -1, *[1] * (rank - 2)]) if rank > 1 else x


@rule("BatchNormalization", since=14)
def _batch_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Fixed,
    var: Fixed,
    *,
    node: Node,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> tuple[Tensor, ...]:
    if not training_mode:
        return (_normalized(x, scale, bias, mean, var, epsilon),)
    axes = [k for k in range(x.ndim) if k != 1]
    wide = cast(x, mean.dtype.name)
    of_batch, spread = ops.mean(wide, axes), ops.var(wide, axes)
    means = mean * momentum + of_batch * (1.0 - momentum)
    return (
        _normalized(x, scale, bias, of_batch, spread, epsilon),
        means,
        var * momentum + spread * (1.0 - momentum),
    )


@rule("BatchNormalization", since=9)
def _batch_normalization_9(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Fixed,
    var: Fixed,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
) -> tuple[Tensor, ...]:
    return (_normalized(x, scale, bias, mean, var, epsilon),)


def _normalized(x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, epsilon: float) -> Tensor:
    # The factor and the term of each channel are computed once, with the digits of the statistics.
    factor = scale * ops.rsqrt(var + epsilon)
    term = bias - mean * factor
    return cast(x * _by_channel(factor, x.ndim) + _by_channel(term, x.ndim), x.dtype.name)


@rule("InstanceNormalization", since=6)
def _instance_normalization(x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    return ops.instance_norm(x, scale, bias, epsilon)


def _stashed(x: Tensor, stash_type: int) -> Tensor:
    """Converts to the dtype in which an operator computes: float32 instead of 16 bits."""
    return ops.astype(x, "float32") if stash_type == 1 and x.dtype.itemsize == 2 else x


@rule("LayerNormalization")
def _layer_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor | None = None,
    *,
    node: Node,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> tuple[Tensor, ...]:
    first = axis % x.ndim
    wide = _stashed(x, stash_type)
    shape, count = [*x.shape[:first], *[1] * (x.ndim - first)], math.prod(x.shape[first:])
    rows = ops.reshape(wide, [*x.shape[:first], count])
    if scale.size == count and (bias is None or bias.size == count):
        factor, term = (None if t is None else ops.reshape(t, [count]) for t in (scale, bias))
        found = ops.reshape(ops.layer_norm(rows, factor, term, epsilon), x.shape)
    else:
        found = ops.reshape(ops.layer_norm(rows, None, None, epsilon), x.shape) * scale
        found = found if bias is None else found + bias
    results = [cast(found, x.dtype.name)]
    if node.wants(1) or node.wants(2):
        mean, spread = ops.mean(rows, -1), ops.var(rows, -1)
        results += [ops.reshape(mean, shape), ops.reshape(ops.rsqrt(spread + epsilon), shape)]
    return tuple(results)


@rule("RMSNormalization")
def _rms_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    first = axis % x.ndim
    rows = ops.reshape(_stashed(x, stash_type), [*x.shape[:first], math.prod(x.shape[first:])])
    found = ops.reshape(ops.rms_norm(rows, None, epsilon), x.shape)
    return cast(cast(found, x.dtype.name) * scale, x.dtype.name)


@rule("GroupNormalization", since=21)
def _group_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    found = ops.group_norm(_stashed(x, stash_type), None, None, num_groups, epsilon)
    found = cast(found, x.dtype.name)
    return found * _by_channel(scale, x.ndim) + _by_channel(bias, x.ndim)


@rule("MeanVarianceNormalization")
def _mean_variance_normalization(x: Tensor, *, axes: Sequence[int] = (0, 2, 3)) -> Tensor:
    centered = x - ops.mean(x, list(axes), True)
    return centered / (ops.std(x, list(axes), 0.0, True) + 1e-9)


@rule("LpNormalization")
def _lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    size = ops.sum(ops.abs(x), axis, True) if p == 1 else ops.sqrt(ops.sum(x * x, axis, True))
    # A row of zeros remains.
    return x / ops.where(ops.eq(size, 0.0), ops.zeros_like(size) + 1.0, size)


@rule("LRN")
def _local_response_normalization(
    x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Tensor:
    before = (size - 1) // 2
    channels = x.shape[1]
    squares = ops.moveaxis(x * x, 1, -1)
    squares = ops.pad(squares, [before, size - 1 - before])
    # Neighbours are added one by one: differences of cumulative sums would lose digits.
    total = ops.slice(squares, -1, 0, channels)
    for k in range(1, size):
        total = total + ops.slice(squares, -1, k, k + channels)
    total = ops.moveaxis(total, -1, 1)
    return x / ops.power(total * (alpha / size) + bias, beta)
