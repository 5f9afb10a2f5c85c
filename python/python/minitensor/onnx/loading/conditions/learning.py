"""Classical machine learning: the domain `ai.onnx.ml`."""

from __future__ import annotations

from collections.abc import Sequence

from .condition import Arguments, Condition, at_least, meets, one_of
from .sizes import size_of

__all__ = ["CONDITIONS"]


def _features(value: list[float], arguments: Arguments) -> str | None:
    count = size_of(0, -1)(arguments)
    return None if count is None or len(value) in (1, count) else f"1 or {count} numbers, one for each feature"


def _coefficients(value: list[float], arguments: Arguments) -> str | None:
    features, targets = size_of(0, -1)(arguments), arguments["targets"]
    is_right = features is None or len(value) == features * targets
    return None if is_right else f"{features} · {targets} numbers, one for each feature and target"


#: The conditions by the names of operators.
CONDITIONS: dict[str, Sequence[Condition]] = {
    "LinearRegressor": (
        at_least("targets", 1),
        one_of("post_transform", "NONE", "LOGISTIC", "SOFTMAX"),
        meets("coefficients", _coefficients),
    ),
    "Normalizer": (one_of("norm", "MAX", "L1", "L2"),),
    "Scaler": (meets("offset", _features), meets("scale", _features)),
}
