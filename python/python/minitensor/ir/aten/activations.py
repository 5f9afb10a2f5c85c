"""Activation functions with attributes."""

from __future__ import annotations

from typing import Any

from ... import ops
from ..native import rule
from .promotion import Tensor, cast


@rule("gelu")
def _gelu(self: Tensor, approximate: str = "none") -> Tensor:
    return ops.gelu(self, approximate)  # type: ignore[arg-type]


@rule("elu", in_steps=True)
def _elu(self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    negative = ops.expm1(ops.minimum(self, 0.0) * float(input_scale)) * float(alpha)
    found = ops.where(ops.gt(self, 0.0), self, negative)
    return found if scale == 1 else found * float(scale)


@rule("celu", in_steps=True)
def _celu(self: Tensor, alpha: float = 1.0) -> Tensor:
    return ops.where(ops.gt(self, 0.0), self, ops.expm1(ops.minimum(self, 0.0) / float(alpha)) * float(alpha))


@rule("leaky_relu")
def _leaky_relu(self: Tensor, negative_slope: float = 0.01) -> Tensor:
    return ops.leaky_relu(self, float(negative_slope))


@rule("prelu", "_prelu_kernel", in_steps=True)
def _prelu(self: Tensor, weight: Tensor) -> Tensor:
    if self.ndim > 2 and weight.ndim == 1 and weight.size > 1:
        weight = weight.reshape(-1, *[1] * (self.ndim - 2))
    elif weight.ndim == 1 and weight.size == 1:
        weight = weight.reshape(())
    return ops.where(ops.gt(self, 0.0), self, self * weight)


@rule("hardtanh")
def _hardtanh(self: Tensor, min_val: float = -1, max_val: float = 1, *, out_dtype: str) -> Tensor:
    return ops.minimum(ops.maximum(self, cast(min_val, out_dtype)), cast(max_val, out_dtype))


@rule("softplus", in_steps=True)
def _softplus(self: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    scaled = self if beta == 1 else self * float(beta)
    smooth = ops.softplus(scaled)
    return ops.where(ops.gt(scaled, float(threshold)), self, smooth if beta == 1 else smooth / float(beta))


@rule("threshold")
def _threshold(self: Tensor, threshold: float, value: float, out_dtype: str) -> Tensor:
    return ops.where(ops.le(self, cast(threshold, out_dtype)), cast(value, out_dtype), self)


@rule("hardshrink")
def _hardshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    return ops.where(ops.le(ops.abs(self), float(lambd)), 0.0, self)


@rule("softshrink", in_steps=True)
def _softshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    beyond = ops.maximum(ops.abs(self) - float(lambd), 0.0)
    return ops.where(ops.lt(self, 0.0), ops.negative(beyond), beyond)


@rule("glu", in_steps=True)
def _glu(self: Tensor, dim: int = -1) -> Tensor:
    half = self.shape[dim] // 2
    return ops.slice(self, dim, 0, half) * ops.sigmoid(ops.slice(self, dim, half, 2 * half))


@rule("logit", in_steps=True)
def _logit(self: Tensor, out_dtype: str, eps: float | None = None) -> Tensor:
    x = cast(self, out_dtype)
    if eps is not None:
        low, high = float(eps), 1.0 - float(eps)
        x = ops.where(ops.lt(x, low), low, ops.where(ops.gt(x, high), high, x))
    return ops.log(x / (1.0 - x))


def _rows(x: Tensor, dim: int, function: Any) -> Tensor:
    """Applies a function along an axis. A tensor without dimensions is a row of one element."""
    return function(x, dim) if x.ndim else function(x.reshape(1), 0).reshape(())  # type: ignore[no-any-return]


@rule("softmax.int", "_softmax", "special_softmax")
def _softmax(self: Tensor, dim: int, out_dtype: str, dtype: str | None = None, half_to_float: bool = False) -> Tensor:
    return _rows(cast(self, out_dtype), dim, ops.softmax)


@rule("log_softmax.int", "_log_softmax", "special_log_softmax")
def _log_softmax(
    self: Tensor, dim: int, out_dtype: str, dtype: str | None = None, half_to_float: bool = False
) -> Tensor:
    return _rows(cast(self, out_dtype), dim, ops.log_softmax)


@rule("_safe_softmax", in_steps=True)
def _safe_softmax(self: Tensor, dim: int, out_dtype: str, dtype: str | None = None) -> Tensor:
    x = cast(self, out_dtype)
    # A row of -inf is a row of zeros.
    is_masked = ops.eq(ops.amax(x, dim, True), float("-inf"))
    return ops.where(is_masked, 0.0, ops.softmax(ops.where(is_masked, 0.0, x), dim))


@rule("dropout", "feature_dropout", "alpha_dropout", when=lambda attrs: not attrs.get("train") or not attrs.get("p"))
def _dropout(input: Tensor, p: float, train: bool) -> Tensor:  # noqa: A002 - the schema
    return input


@rule("native_dropout", when=lambda attrs: not attrs.get("train") or attrs.get("p") in (0, 1))
def _native_dropout(input: Tensor, p: float, train: bool | None = None) -> list[Tensor]:  # noqa: A002 - the schema
    kept = ops.astype(ops.eq(ops.zeros_like(ops.astype(input, "float32")), 0.0), "bool")
    if train and p == 1:
        return [ops.zeros_like(input), ops.logical_not(kept)]
    return [input, kept]
