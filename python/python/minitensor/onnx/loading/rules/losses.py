"""Losses of classes."""

from __future__ import annotations

from .... import ops
from ..rule import rule
from ..values import Tensor


def _loss(
    log_probabilities: Tensor, target: Tensor, weight: Tensor | None, ignored: int | None, reduction: str
) -> Tensor:
    """Returns the negative logarithms of the probabilities of the targets."""
    index = ops.astype(target, "int64")
    is_kept = None if ignored is None else ops.ne(index, ignored)
    # An ignored target may be no class.
    index = index if is_kept is None else ops.where(is_kept, index, ops.zeros_like(index))
    at = ops.expand_dims(index, 1)
    found = ops.reshape(ops.gather(log_probabilities, at, 1), target.shape)
    factor = None if weight is None else ops.take(weight, index, 0)
    if is_kept is not None:
        kept = ops.astype(is_kept, found.dtype)
        factor = kept if factor is None else factor * kept
    loss = ops.negative(found if factor is None else found * factor)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return ops.sum(loss)
    return ops.mean(loss) if factor is None else ops.sum(loss) / ops.sum(factor)


@rule("NegativeLogLikelihoodLoss")
def _negative_log_likelihood(
    x: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int | None = None, reduction: str = "mean"
) -> Tensor:
    return _loss(x, target, weight, ignore_index, reduction)


@rule("SoftmaxCrossEntropyLoss")
def _softmax_cross_entropy(
    scores: Tensor,
    labels: Tensor,
    weights: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> tuple[Tensor, Tensor]:
    logarithms = ops.log_softmax(scores, 1)
    return _loss(logarithms, labels, weights, ignore_index, reduction), logarithms
