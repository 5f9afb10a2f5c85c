"""Ensembles of decision trees: of the domain `ai.onnx.ml`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import ops
from ..error import OnnxError
from ..graph import Node
from ..rule import rule
from ..values import Known, Tensor, Value, known, tensor
from .forest import LEAF, Forest, Weights, members
from .learning import DOMAIN
from .scores import TRANSFORMS, labelled, of_two

#: The numbers of the modes of nodes by name.
_MODES = {f"BRANCH_{name}": k for k, name in enumerate(("LEQ", "LT", "GTE", "GT", "EQ", "NEQ"))} | {"LEAF": LEAF}


def _floats(x: Tensor) -> Tensor:
    return x if x.dtype.is_floating_point else ops.astype(x, "float32")


def _aggregated(weights: Weights, at: Tensor, how: str) -> Tensor:
    match how:
        case "MIN":
            return weights.least(at)
        case "MAX":
            return weights.greatest(at)
        case "AVERAGE":
            return weights.total(at) / float(at.shape[1])
    return weights.total(at)


def _array(values: Any, as_tensor: Value) -> Known:
    """An attribute as an array: a list of floats, or a tensor, which may have 64 bits."""
    return known(as_tensor) if as_tensor is not None else np.array(values or [], dtype="float32")


class _Table:
    """The nodes of a forest by their trees and numbers, as the attributes list them."""

    def __init__(self, attributes: dict[str, Any]) -> None:
        self.attributes = attributes
        self._at = {pair: k for k, pair in enumerate(self._pairs("nodes"))}

    def _pairs(self, kind: str) -> list[tuple[int, int]]:
        trees, nodes = (self.attributes.get(f"{kind}_{name}") or [] for name in ("treeids", "nodeids"))
        if len(trees) != len(nodes):
            raise OnnxError(
                f"the attributes {kind}_treeids and {kind}_nodeids have {len(trees)} and {len(nodes)} numbers"
            )
        return list(zip(trees, nodes, strict=True))

    def _places(self, pairs: Sequence[tuple[int, int]]) -> Known:
        missing = [pair for pair in pairs if pair not in self._at]
        if missing:
            raise OnnxError(f"the tree {missing[0][0]} has no node {missing[0][1]}")
        return np.array([self._at[pair] for pair in pairs], dtype="int64")

    def forest(self) -> Forest:
        """The trees."""
        given = self.attributes
        trees = given["nodes_treeids"]
        count = len(trees)
        unknown = set(given["nodes_modes"]) - _MODES.keys()
        if unknown:
            raise OnnxError(f"the mode {sorted(unknown)[0]!r} is unknown; expected {', '.join(_MODES)}")
        modes = np.array([_MODES[mode] for mode in given["nodes_modes"]], dtype="int64")
        is_leaf, own = modes == LEAF, np.arange(count)
        following = []
        for name in ("nodes_truenodeids", "nodes_falsenodeids"):
            pairs = list(zip(trees, given[name], strict=True))
            inner = self._places([pair for pair, is_end in zip(pairs, is_leaf, strict=True) if not is_end])
            found = own.copy()
            found[~is_leaf] = inner
            following.append(found)
        if_true, if_false = following
        # The first node of a tree is its root.
        roots = list(dict(zip(reversed(trees), range(count - 1, -1, -1), strict=True)).values())
        features = np.where(is_leaf, 0, np.array(given["nodes_featureids"], dtype="int64"))
        thresholds = _array(given.get("nodes_values"), given.get("nodes_values_as_tensor"))
        nan = given.get("nodes_missing_value_tracks_true") or [0] * count
        takes_nan = np.array(nan, dtype=bool) & ~is_leaf
        return Forest(np.array(roots, dtype="int64"), modes, features, thresholds, if_true, if_false, takes_nan)

    def weights(self, kind: str, count: int) -> Weights:
        """The weights of leaves: those of `class` or of `target`."""
        values = _array(self.attributes.get(f"{kind}_weights"), self.attributes.get(f"{kind}_weights_as_tensor"))
        targets = np.array(self.attributes[f"{kind}_ids"], dtype="int64")
        return Weights(self._places(self._pairs(kind)), targets, values, (len(self._at), count))


def _based(scores: Tensor, base_values: list[float] | None, base_values_as_tensor: Value) -> Tensor:
    """Adds the base value of each target to its scores."""
    base = [float(value) for value in _array(base_values, base_values_as_tensor)]
    return scores + tensor(np.array(base)).astype(scores.dtype) if base else scores


@rule("TreeEnsembleRegressor", domain=DOMAIN)
def _tree_ensemble_regressor(
    x: Tensor,
    *,
    node: Node,
    aggregate_function: str = "SUM",
    base_values: list[float] | None = None,
    base_values_as_tensor: Value = None,
    n_targets: int = 1,
    nodes_falsenodeids: list[int],
    nodes_featureids: list[int],
    nodes_hitrates: list[float] | None = None,
    nodes_hitrates_as_tensor: Value = None,
    nodes_missing_value_tracks_true: list[int] | None = None,
    nodes_modes: list[str],
    nodes_nodeids: list[int],
    nodes_treeids: list[int],
    nodes_truenodeids: list[int],
    nodes_values: list[float] | None = None,
    nodes_values_as_tensor: Value = None,
    post_transform: str = "NONE",
    target_ids: list[int],
    target_nodeids: list[int],
    target_treeids: list[int],
    target_weights: list[float] | None = None,
    target_weights_as_tensor: Value = None,
) -> Tensor:
    def make() -> tuple[Forest, Weights]:
        table = _Table(node.attributes)
        return table.forest(), table.weights("target", n_targets)

    forest, weights = node.kept(make)
    found = _aggregated(weights, forest.leaves(_floats(x)), aggregate_function)
    found = _based(found, base_values, base_values_as_tensor)
    return ops.astype(TRANSFORMS[post_transform](found), "float32")


@rule("TreeEnsembleClassifier", domain=DOMAIN)
def _tree_ensemble_classifier(
    x: Tensor,
    *,
    node: Node,
    base_values: list[float] | None = None,
    base_values_as_tensor: Value = None,
    class_ids: list[int],
    class_nodeids: list[int],
    class_treeids: list[int],
    class_weights: list[float] | None = None,
    class_weights_as_tensor: Value = None,
    classlabels_int64s: list[int] | None = None,
    classlabels_strings: list[str] | None = None,
    nodes_falsenodeids: list[int],
    nodes_featureids: list[int],
    nodes_hitrates: list[float] | None = None,
    nodes_hitrates_as_tensor: Value = None,
    nodes_missing_value_tracks_true: list[int] | None = None,
    nodes_modes: list[str],
    nodes_nodeids: list[int],
    nodes_treeids: list[int],
    nodes_truenodeids: list[int],
    nodes_values: list[float] | None = None,
    nodes_values_as_tensor: Value = None,
    post_transform: str = "NONE",
) -> tuple[Value, Tensor]:
    count = len(classlabels_int64s or classlabels_strings or [])

    def make() -> tuple[Forest, Weights]:
        table = _Table(node.attributes)
        return table.forest(), table.weights("class", count)

    forest, weights = node.kept(make)
    found = weights.total(forest.leaves(_floats(x)))
    found = _based(found, base_values, base_values_as_tensor)
    ids = set(class_ids)
    if count == 2 and len(ids) == 1:
        # The scores of one class determine those of both, and the label.
        (own,) = ids
        score = ops.slice(found, 1, own, own + 1)
        is_probability = bool((weights.values >= 0).all())
        index = ops.astype(ops.gt(ops.reshape(score, [-1]), 0.5 if is_probability else 0.0), "int64")
        found = of_two(score, is_probability, post_transform) if own == 0 else TRANSFORMS[post_transform](found)
    else:
        index = ops.argmax(found, 1)
        found = TRANSFORMS[post_transform](found)
    return labelled(index, classlabels_int64s, classlabels_strings), ops.astype(found, "float32")


@rule("TreeEnsemble", domain=DOMAIN)
def _tree_ensemble(
    x: Tensor,
    *,
    node: Node,
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
) -> Tensor:
    def make() -> tuple[Forest, Weights]:
        modes = known(nodes_modes).astype("int64")
        # The leaves are nodes after the others.
        inner, leaves = len(modes), len(leaf_targetids)
        own = np.arange(inner, inner + leaves)
        if_true, if_false = (
            np.concatenate([np.array(ids, dtype="int64") + inner * (np.array(is_leaf) != 0), own])
            for ids, is_leaf in ((nodes_truenodeids, nodes_trueleafs), (nodes_falsenodeids, nodes_falseleafs))
        )
        padding = np.zeros(leaves, dtype="int64")
        nan = nodes_missing_value_tracks_true or [0] * inner
        forest = Forest(
            np.array(tree_roots, dtype="int64"),
            np.concatenate([modes, padding + LEAF]),
            np.concatenate([np.array(nodes_featureids, dtype="int64"), padding]),
            np.concatenate([known(nodes_splits), padding.astype(known(nodes_splits).dtype)]),
            if_true,
            if_false,
            np.concatenate([np.array(nan, dtype=bool), padding.astype(bool)]),
            members(modes, [] if membership_values is None else known(membership_values).tolist()),
        )
        values = known(leaf_weights)
        return forest, Weights(own, np.array(leaf_targetids, dtype="int64"), values, (inner + leaves, n_targets))

    forest, weights = node.kept(make)
    how = ("AVERAGE", "SUM", "MIN", "MAX")[aggregate_function]
    found = _aggregated(weights, forest.leaves(x), how)
    return TRANSFORMS[("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")[post_transform]](found)
