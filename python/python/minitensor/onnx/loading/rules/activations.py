"""Activation functions."""

from __future__ import annotations

from .... import _minitensor as mt
from .... import ops
from ..rule import rule
from ..values import Tensor


@rule("Relu")
def _relu(x: Tensor) -> Tensor:
    return ops.relu(x)


@rule("LeakyRelu", since=6)
def _leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor:
    return ops.leaky_relu(x, alpha)


@rule("PRelu", since=7)
def _prelu(x: Tensor, slope: Tensor) -> Tensor:
    return ops.where(ops.lt(x, 0), x * slope, x)


@rule("ThresholdedRelu")
def _thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return ops.where(ops.gt(x, alpha), x, ops.zeros_like(x))


@rule("Elu", since=6)
def _elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return ops.where(ops.ge(x, 0.0), x, ops.expm1(ops.minimum(x, 0.0)) * alpha)


@rule("Celu")
def _celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return ops.maximum(x, 0.0) + ops.expm1(ops.minimum(x, 0.0) / alpha) * alpha


@rule("Selu", since=6)
def _selu(x: Tensor, *, alpha: float = 1.6732631921768188, gamma: float = 1.0507010221481323) -> Tensor:
    return ops.where(ops.gt(x, 0.0), x, ops.expm1(ops.minimum(x, 0.0)) * alpha) * gamma


@rule("Gelu")
def _gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return ops.gelu(x, "tanh" if approximate == "tanh" else "none")


@rule("HardSigmoid", since=6)
def _hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    return ops.minimum(ops.maximum(x * alpha + beta, 0.0), 1.0)


@rule("HardSwish")
def _hard_swish(x: Tensor) -> Tensor:
    return ops.hardswish(x)


@rule("Mish")
def _mish(x: Tensor) -> Tensor:
    return ops.mish(x)


@rule("Softplus")
def _softplus(x: Tensor) -> Tensor:
    return ops.softplus(x)


@rule("Softsign")
def _softsign(x: Tensor) -> Tensor:
    return ops.softsign(x)


@rule("Swish")
def _swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return ops.swish(x) if alpha == 1 else x * ops.sigmoid(x * alpha)


@rule("SwiGLU")
def _swiglu(a: Tensor, b: Tensor, *, alpha: float = 1.0) -> Tensor:
    return _swish(a, alpha=alpha) * b


@rule("Shrink")
def _shrink(x: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    zero = ops.zeros_like(x)
    return ops.where(ops.lt(x, -lambd), x + bias, ops.where(ops.gt(x, lambd), x - bias, zero))


@rule("Softmax", since=13)
def _softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    return ops.softmax(x, axis)


@rule("LogSoftmax", since=13)
def _log_softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    return ops.log_softmax(x, axis)


@rule("Hardmax", since=13)
def _hardmax(x: Tensor, *, axis: int = -1) -> Tensor:
    best = ops.argmax(x, axis, True)
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    at = ops.reshape(mt.arange(x.shape[axis], dtype="int64"), shape)
    return ops.astype(ops.eq(at, best), x.dtype)
