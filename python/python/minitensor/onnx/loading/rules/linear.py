"""Linear models and support vector machines: of the domain `ai.onnx.ml`."""

from __future__ import annotations

import numpy as np

from .... import ops
from ..rule import rule
from ..values import Tensor, Value, tensor
from .learning import DOMAIN
from .scores import TRANSFORMS, labelled, of_two


def _products(x: Tensor, coefficients: list[float], intercepts: list[float] | None, rows: int) -> Tensor:
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
    return TRANSFORMS[post_transform](_products(x, coefficients, intercepts, targets))


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
    found = _products(x, coefficients, intercepts, max(len(coefficients) // max(x.shape[1], 1), 1))
    if found.shape[1] == 1:
        index = ops.astype(ops.gt(ops.reshape(found, [-1]), 0.0), "int64")
        found = of_two(found, True, post_transform)
    else:
        index = ops.argmax(found, -1)
        found = TRANSFORMS[post_transform](found)
    return labelled(index, classlabels_ints, classlabels_strings), found


@rule("SVMRegressor", domain=DOMAIN)
def _svm_regressor(
    x: Tensor,
    *,
    coefficients: list[float],
    kernel_params: list[float] | None = None,
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: list[float],
    support_vectors: list[float] | None = None,
) -> Tensor:
    x = ops.astype(x, "float32")
    if n_supports:
        vectors = tensor(np.array(support_vectors, dtype="float32").reshape(n_supports, -1))
        products = _kernel(x, vectors, kernel_type, kernel_params or [0.0, 0.0, 0.0])
        found = _products(products, coefficients, rho, 1)
    else:
        found = _products(x, coefficients, rho, 1)
    return ops.where(ops.gt(found, 0.0), 1.0, -1.0) if one_class else found


def _kernel(x: Tensor, vectors: Tensor, kind: str, parameters: list[float]) -> Tensor:
    """The kernel of each row with each vector. The parameters are gamma, the constant term, and the degree."""
    gamma, constant, degree = parameters
    if kind == "RBF":
        distances = ops.sum(ops.square(ops.expand_dims(x, 1) - vectors), -1)
        return ops.exp(distances * -gamma)
    products = ops.matmul(x, ops.matrix_transpose(vectors))
    if kind == "LINEAR":
        return products
    shifted = products * gamma + constant
    return ops.power(shifted, degree) if kind == "POLY" else ops.tanh(shifted)
