"""Scores of classes, and the labels of the best ones: the end of the classifiers of `ai.onnx.ml`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .... import ops
from ..values import Tensor, Value, known, tensor

__all__ = ["TRANSFORMS", "labelled", "of_two"]


def _softmax_zero(x: Tensor) -> Tensor:
    """The softmax of the scores that are not 0."""
    most = ops.amax(x, -1, True)
    is_zero = ops.le(ops.abs(x), 1e-7)
    found = ops.where(is_zero, x * ops.exp(ops.negative(most)), ops.exp(x - most))
    total = ops.sum(found, -1, True)
    return ops.where(ops.eq(total, 0.0), 0.5, found / total)


#: The functions of the scores of a row.
TRANSFORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "NONE": lambda x: x,
    "LOGISTIC": ops.sigmoid,
    "SOFTMAX": lambda x: ops.softmax(x, -1),
    "SOFTMAX_ZERO": _softmax_zero,
}


def of_two(x: Tensor, is_probability: bool, transform: str) -> Tensor:
    """The scores of two classes, given that of the second one. As in onnxruntime, only one transform changes them."""
    if transform == "LOGISTIC":
        return ops.sigmoid(ops.concat([ops.negative(x), x], -1))
    return ops.concat([1.0 - x if is_probability else ops.negative(x), x], -1)


def labelled(index: Tensor, integers: Sequence[int] | None, strings: Sequence[str] | None) -> Value:
    """The labels of classes, by their positions."""
    if strings:
        return np.array(strings, dtype=object)[known(index)]
    labels = tensor(np.array(integers or [], dtype="int64"))
    return ops.take(labels, index, 0)
