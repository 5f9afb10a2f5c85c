"""Support vector machines: of the domain `ai.onnx.ml`."""

from __future__ import annotations

import itertools

import numpy as np

from .... import ops
from ..rule import rule
from ..values import Known, Tensor, Value, known, tensor
from .learning import DOMAIN
from .linear import linear_scores
from .scores import TRANSFORMS, labelled, of_two


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
        found = linear_scores(products, coefficients, rho, 1)
    else:
        found = linear_scores(x, coefficients, rho, 1)
    return ops.where(ops.gt(found, 0.0), 1.0, -1.0) if one_class else found


@rule("SVMClassifier", domain=DOMAIN)
def _svm_classifier(
    x: Tensor,
    *,
    classlabels_ints: list[int] | None = None,
    classlabels_strings: list[str] | None = None,
    coefficients: list[float],
    kernel_params: list[float] | None = None,
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    prob_a: list[float] | None = None,
    prob_b: list[float] | None = None,
    rho: list[float],
    support_vectors: list[float] | None = None,
    vectors_per_class: list[int] | None = None,
) -> tuple[Value, Tensor]:
    x = ops.astype(x, "float32")
    count = len(classlabels_ints or classlabels_strings or [])
    if not vectors_per_class:
        found = linear_scores(x, coefficients, [rho[0]] * count, count)
        index = ops.argmax(found, 1)
        if count == 2:
            # As in onnxruntime, a positive score is one of the second class.
            best = ops.amax(found, 1)
            is_second = ops.ge(best, 0.5) if min(coefficients) >= 0 else ops.gt(best, 0.0)
            index = ops.where(is_second, 1, index)
        return labelled(index, classlabels_ints, classlabels_strings), TRANSFORMS[post_transform](found)
    vectors = tensor(np.array(support_vectors, dtype="float32").reshape(sum(vectors_per_class), -1))
    kernel = _kernel(x, vectors, kernel_type, kernel_params or [0.0, 0.0, 0.0])
    found = ops.matmul(kernel, tensor(_between_pairs(coefficients, vectors_per_class)))
    found = found + tensor(np.array(rho, dtype="float32"))
    # Each pair of classes has a vote. The first of the classes with the most votes is chosen.
    pairs = list(itertools.combinations(range(count), 2))
    first, second = (tensor(np.eye(count, dtype="float32")[[pair[k] for pair in pairs]]) for k in (0, 1))
    wins = ops.astype(ops.gt(found, 0.0), "float32")
    index = ops.argmax(ops.matmul(wins, first) + ops.matmul(1.0 - wins, second), 1)
    if prob_a:
        found = tensor(_coupled(known(found), prob_a, prob_b or [], count))
    elif count == 2:
        found = of_two(found, post_transform != "NONE", post_transform)
        return labelled(index, classlabels_ints, classlabels_strings), found
    return labelled(index, classlabels_ints, classlabels_strings), TRANSFORMS[post_transform](found)


def _between_pairs(coefficients: list[float], counts: list[int]) -> Known:
    """The weights of the support vectors in the score of each pair of classes: a column for each pair."""
    given = np.array(coefficients, dtype="float32").reshape(len(counts) - 1, sum(counts))
    ends = np.cumsum(counts)
    parts = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    columns = []
    for i, j in itertools.combinations(range(len(counts)), 2):
        column = np.zeros(sum(counts), dtype="float32")
        column[parts[i]], column[parts[j]] = given[j - 1, parts[i]], given[i, parts[j]]
        columns.append(column)
    return np.stack(columns, 1)


def _coupled(scores: Known, a: list[float], b: list[float], count: int) -> Known:
    """Probabilities of classes, given those of each pair of classes (Wu, Lin and Weng, 2004, algorithm 2)."""
    pairwise = 1.0 / (1.0 + np.exp(scores.astype("float64") * a + b))
    pairwise = np.clip(pairwise, 1e-7, 1 - 1e-7)
    r = np.zeros((len(scores), count, count))
    for k, (i, j) in enumerate(itertools.combinations(range(count), 2)):
        r[:, i, j], r[:, j, i] = pairwise[:, k], 1 - pairwise[:, k]
    q = -np.swapaxes(r, 1, 2) * r
    for t in range(count):
        q[:, t, t] = (r[:, :, t] ** 2).sum(1)
    found = np.empty((len(scores), count))
    for k, matrix in enumerate(q):
        found[k] = _fixed_point(matrix, count)
    return found.astype("float32")


def _fixed_point(q: Known, count: int) -> Known:
    p = np.full(count, 1.0 / count)
    for _ in range(max(100, count)):
        gradient = q @ p
        value = p @ gradient
        if np.abs(gradient - value).max() < 0.005 / count:
            break
        for t in range(count):
            step = (value - gradient[t]) / q[t, t]
            p[t] += step
            value = (value + step * (step * q[t, t] + 2 * gradient[t])) / (1 + step) ** 2
            gradient = (gradient + step * q[t]) / (1 + step)
            p /= 1 + step
    return p


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
