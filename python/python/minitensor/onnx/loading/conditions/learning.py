"""Classical machine learning: the domain `ai.onnx.ml`."""

from __future__ import annotations

from collections.abc import Sequence

from .condition import Arguments, Condition, at_least, meets, one_of, ranks, same_length
from .sizes import length_of, size_of

__all__ = ["CONDITIONS"]


def _features(value: list[float], arguments: Arguments) -> str | None:
    count = size_of(0, -1)(arguments)
    return None if count is None or len(value) in (1, count) else f"1 or {count} numbers, one for each feature"


def _classes(value: list[float], arguments: Arguments) -> str | None:
    features = size_of(0, -1)(arguments)
    is_right = not features or len(value) % features == 0 and len(value) > 0
    return None if is_right else f"{features} numbers, one for each feature, for each class"


def _known_features(value: list[int], arguments: Arguments) -> str | None:
    features = size_of(0, -1)(arguments) or 0
    # A leaf has no feature, and any number.
    modes = arguments["nodes_modes"]
    is_named = isinstance(modes, list) and len(modes) == len(value) and isinstance(modes[0] if modes else "", str)
    read = [k for k, mode in zip(value, modes, strict=True) if mode != "LEAF"] if is_named else value
    return (
        None if all(0 <= k < features for k in read) else f"numbers from 0 to {features - 1}, the features of the input"
    )


def _labels(arguments: Arguments) -> int:
    return len(arguments["cats_int64s"])


def _inputs(arguments: Arguments) -> int:
    return len(arguments.node.inputs)


def _pairs(arguments: Arguments) -> int:
    """The number of the scores of support vectors. A linear model has one constant term."""
    classes = len(arguments["vectors_per_class"] or [])
    return max(classes * (classes - 1) // 2, 1)


#: The lists of a classifier that have a number for each pair of classes.
_PER_PAIR = ("rho", "prob_a", "prob_b")
_TRANSFORM = one_of("post_transform", "NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
_ROWS = ranks("x", 0, 2, 2, "rows of features: 2 axes")
_KERNEL = (
    _ROWS,
    one_of("kernel_type", "LINEAR", "POLY", "RBF", "SIGMOID"),
    same_length("kernel_params", lambda _: 3, "of gamma, the constant term and the degree"),
)
_PER_NODE = ("nodeids", "truenodeids", "falsenodeids", "featureids", "modes", "values", "missing_value_tracks_true")
_NODES = [same_length(f"nodes_{name}", length_of("nodes_treeids"), "node") for name in _PER_NODE]
_TREES = (_TRANSFORM, _ROWS, *_NODES, meets("nodes_featureids", _known_features))


def _coefficients(value: list[float], arguments: Arguments) -> str | None:
    features, targets = size_of(0, -1)(arguments), arguments["targets"]
    is_right = features is None or len(value) == features * targets
    return None if is_right else f"{features} · {targets} numbers, one for each feature and target"


#: The conditions by the names of operators.
CONDITIONS: dict[str, Sequence[Condition]] = {
    "CategoryMapper": (same_length("cats_strings", _labels, "number"),),
    "FeatureVectorizer": (same_length("inputdimensions", _inputs, "input"),),
    "Imputer": (meets("imputed_value_floats", _features), meets("imputed_value_int64s", _features)),
    "LinearClassifier": (_TRANSFORM, meets("coefficients", _classes)),
    "LinearRegressor": (
        at_least("targets", 1),
        _TRANSFORM,
        meets("coefficients", _coefficients),
    ),
    "Normalizer": (one_of("norm", "MAX", "L1", "L2"),),
    "SVMClassifier": (*_KERNEL, _TRANSFORM, *(same_length(name, _pairs, "pair of classes") for name in _PER_PAIR)),
    "SVMRegressor": (*_KERNEL, one_of("post_transform", "NONE"), same_length("rho", lambda _: 1, "target")),
    "TreeEnsemble": (
        _ROWS,
        one_of("aggregate_function", 0, 1, 2, 3),
        one_of("post_transform", 0, 1, 2, 3),
        meets("nodes_featureids", _known_features),
    ),
    "TreeEnsembleClassifier": _TREES,
    "TreeEnsembleRegressor": (*_TREES, one_of("aggregate_function", "SUM", "AVERAGE", "MIN", "MAX")),
    "Scaler": (meets("offset", _features), meets("scale", _features)),
}
