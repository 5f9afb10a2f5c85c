"""Linear models: of the domain `ai.onnx.ml`."""

from __future__ import annotations

import numpy as np

from .... import ops
from ..rule import rule
from ..values import Tensor, Value, tensor
from .learning import DOMAIN
from .scores import TRANSFORMS, labelled, of_two

__all__ = ["linear_scores"]


def linear_scores(x: Tensor, coefficients: list[float], intercepts: list[float] | None, rows: int) -> Tensor:
    """The products with the rows of a matrix, and an intercept for each."""
    weight = tensor(np.array(coefficients, dtype="float32").reshape(rows, -1))
    found = ops.matmul(ops.astype(x, "float32"), ops.matrix_transpose(weight))
    return found + tensor(np.array(intercepts, dtype="float32")) if intercepts else found


@rule("LinearRegressor", domain=DOMAIN)
def _linear_regressor(
    x: Tensor,
    *,
    coefficients: list[float],
    intercepts: list[float] | None = None,
    post_transform: str = "NONE",
    targets: int = 1,
) -> Tensor:
    return TRANSFORMS[post_transform](linear_scores(x, coefficients, intercepts, targets))


@rule("LinearClassifier", domain=DOMAIN)
def _linear_classifier(
    x: Tensor,
    *,
    classlabels_ints: list[int] | None = None,
    classlabels_strings: list[str] | None = None,
    coefficients: list[float],
    intercepts: list[float] | None = None,
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> tuple[Value, Tensor]:
    x = ops.reshape(x, [1, -1]) if x.ndim == 1 else x
    found = linear_scores(x, coefficients, intercepts, max(len(coefficients) // max(x.shape[1], 1), 1))
    if found.shape[1] == 1:
        index = ops.astype(ops.gt(ops.reshape(found, [-1]), 0.0), "int64")
        found = of_two(found, True, post_transform)
    else:
        index = ops.argmax(found, -1)
        found = TRANSFORMS[post_transform](found)
    return labelled(index, classlabels_ints, classlabels_strings), found
