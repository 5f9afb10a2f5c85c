"""Classical machine learning: the domain `ai.onnx.ml`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .... import ops
from ..error import OnnxError
from ..rule import rule
from ..values import Known, Tensor, Value, is_text, known, tensor

DOMAIN = "ai.onnx.ml"


@rule("ArrayFeatureExtractor", domain=DOMAIN, moves=True)
def _array_feature_extractor(x: Tensor, index: Tensor) -> Tensor:
    rows = ops.reshape(x, [1, -1]) if x.ndim == 1 else x
    return ops.take(rows, ops.reshape(index, [index.size]), -1)


@rule("Binarizer", domain=DOMAIN)
def _binarizer(x: Tensor, *, threshold: float = 0.0) -> Tensor:
    return ops.astype(ops.gt(x, threshold), x.dtype)


@rule("Scaler", domain=DOMAIN)
def _scaler(x: Tensor, *, offset: list[float], scale: list[float]) -> Tensor:
    first, factor = (tensor(np.array(v, dtype="float32")) for v in (offset, scale))
    return (ops.astype(x, "float32") - first) * factor


@rule("Normalizer", domain=DOMAIN)
def _normalizer(x: Tensor, *, norm: str = "MAX") -> Tensor:
    x = ops.astype(x, "float32")
    if norm == "MAX":
        size = ops.amax(ops.abs(x), -1, True)
    elif norm == "L1":
        size = ops.sum(ops.abs(x), -1, True)
    else:
        size = ops.sqrt(ops.sum(x * x, -1, True))
    return x / ops.where(ops.eq(size, 0.0), ops.zeros_like(size) + 1.0, size)


_TRANSFORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "NONE": lambda x: x,
    "LOGISTIC": ops.sigmoid,
    "SOFTMAX": lambda x: ops.softmax(x, -1),
}


@rule("LinearRegressor", domain=DOMAIN)
def _linear_regressor(
    x: Tensor,
    *,
    coefficients: list[float],
    intercepts: list[float] | None = None,
    post_transform: str = "NONE",
    targets: int = 1,
) -> Tensor:
    weight = tensor(np.array(coefficients, dtype="float32").reshape(targets, -1))
    found = ops.matmul(ops.astype(x, "float32"), ops.matrix_transpose(weight))
    if intercepts:
        found = found + tensor(np.array(intercepts, dtype="float32"))
    return _TRANSFORMS[post_transform](found)


def _items(value: Value) -> list[Any]:
    return [] if value is None else (value if is_text(value) else known(value)).reshape(-1).tolist()


@rule("LabelEncoder", domain=DOMAIN, since=2)
def _label_encoder(
    x: Value,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    default_tensor: Value = None,
    keys_floats: list[float] | None = None,
    keys_int64s: list[int] | None = None,
    keys_strings: list[str] | None = None,
    keys_tensor: Value = None,
    values_floats: list[float] | None = None,
    values_int64s: list[int] | None = None,
    values_strings: list[str] | None = None,
    values_tensor: Value = None,
) -> Value:
    keys = keys_floats or keys_int64s or keys_strings or _items(keys_tensor)
    dtype: str
    values: Sequence[Any]
    default: Any
    if values_strings is not None:
        values, default, dtype = values_strings, default_string, "object"
    elif values_floats is not None:
        values, default, dtype = values_floats, default_float, "float32"
    elif values_int64s is not None:
        values, default, dtype = values_int64s, default_int64, "int64"
    else:
        is_of_text = is_text(values_tensor)
        values, dtype = _items(values_tensor), "object" if is_of_text else values_tensor.dtype.name
        fallback: Any = default_string if is_of_text else default_float if "float" in dtype else default_int64
        default = fallback if default_tensor is None else _items(default_tensor)[0]
    # A NaN is a key, too.
    table = {_key(k): v for k, v in zip(keys, values, strict=True)}
    found = [table.get(_key(item), default) for item in _items(x)]
    array = np.empty(len(found), dtype=dtype)
    array[:] = found
    return array.reshape(x.shape)


def _key(item: Any) -> Any:
    return "NaN" if isinstance(item, float) and math.isnan(item) else item


#: How a node of a tree compares a feature with its threshold, by the numbers of `nodes_modes`.
_MODES: dict[int, Callable[[float, float], bool]] = {
    0: lambda x, t: x <= t,
    1: lambda x, t: x < t,
    2: lambda x, t: x >= t,
    3: lambda x, t: x > t,
    4: lambda x, t: x == t,
    5: lambda x, t: x != t,
}
_MEMBER = 6


#: How the leaves of all trees become a number: the average over trees, the sum, the least, the greatest.
_AGGREGATES: list[Callable[[Known, int], Any]] = [
    lambda leaves, trees: leaves.sum() / trees,
    lambda leaves, trees: leaves.sum(),
    lambda leaves, trees: leaves.min(),
    lambda leaves, trees: leaves.max(),
]


@rule("TreeEnsemble", domain=DOMAIN)
def _tree_ensemble(
    x: Known,
    *,
    leaf_targetids: list[int],
    leaf_weights: Value,
    nodes_falseleafs: list[int],
    nodes_falsenodeids: list[int],
    nodes_featureids: list[int],
    nodes_modes: Value,
    nodes_splits: Value,
    nodes_trueleafs: list[int],
    nodes_truenodeids: list[int],
    tree_roots: list[int],
    aggregate_function: int = 1,
    membership_values: Value = None,
    n_targets: int = 1,
    nodes_hitrates: Value = None,
    nodes_missing_value_tracks_true: list[int] | None = None,
    post_transform: int = 0,
) -> Known:
    modes, splits, weights = known(nodes_modes), known(nodes_splits), known(leaf_weights)
    members = _members(modes, membership_values)
    if post_transform:
        raise OnnxError("the attribute post_transform is not supported; compute it by nodes after the ensemble")

    def leaf(row: Sequence[float], node: int) -> int:
        for _ in range(len(modes) + 1):
            value = row[nodes_featureids[node]]
            if math.isnan(value) and nodes_missing_value_tracks_true:
                is_true = bool(nodes_missing_value_tracks_true[node])
            elif modes[node] == _MEMBER:
                is_true = value in members[node]
            else:
                is_true = _MODES[int(modes[node])](value, splits[node])
            following = (nodes_truenodeids if is_true else nodes_falsenodeids)[node]
            if (nodes_trueleafs if is_true else nodes_falseleafs)[node]:
                return following
            node = following
        raise OnnxError("a tree has a cycle")

    found = np.zeros((len(x), n_targets), dtype=x.dtype)
    for k, row in enumerate(x):
        for target in range(n_targets):
            hits = [at for at in (leaf(row, root) for root in tree_roots) if leaf_targetids[at] == target]
            if hits:
                found[k, target] = _AGGREGATES[aggregate_function](weights[hits], len(tree_roots))
    return found


def _members(modes: Known, values: Value) -> dict[int, set[float]]:
    """Returns the set of each node that tests membership. NaN separates the sets."""
    sets: list[set[float]] = [set()]
    for value in _items(values):
        if math.isnan(value):
            sets.append(set())
        else:
            sets[-1].add(value)
    nodes = [k for k, mode in enumerate(modes) if mode == _MEMBER]
    if len(nodes) > len(sets):
        raise OnnxError(f"{len(nodes)} nodes test membership, but there are {len(sets)} sets")
    return dict(zip(nodes, sets, strict=False))
