"""Random numbers. They are those of minitensor, so `mt.manual_seed` determines them; seeds of nodes are ignored."""

from __future__ import annotations

from collections.abc import Sequence

from .... import _minitensor as mt
from .... import ops
from ....ir.aten.promotion import cast
from ..elements import dtype_of
from ..rule import rule
from ..values import Tensor, Value


def _normal(shape: Sequence[int], dtype: str, mean: float, scale: float) -> Tensor:
    return cast(mt.randn(tuple(shape), dtype="float32") * scale + mean, dtype)


def _uniform(shape: Sequence[int], dtype: str, low: float, high: float) -> Tensor:
    return cast(mt.rand(tuple(shape), dtype="float32") * (high - low) + low, dtype)


def _dtype(x: Value, dtype: int | None) -> str:
    return x.dtype.name if dtype is None else dtype_of(dtype)


@rule("RandomNormal")
def _random_normal(*, shape: list[int], dtype: int = 1, mean: float = 0.0, scale: float = 1.0) -> Tensor:
    return _normal(shape, dtype_of(dtype), mean, scale)


@rule("RandomNormalLike")
def _random_normal_like(x: Value, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0) -> Tensor:
    return _normal(x.shape, _dtype(x, dtype), mean, scale)


@rule("RandomUniform")
def _random_uniform(*, shape: list[int], dtype: int = 1, high: float = 1.0, low: float = 0.0) -> Tensor:
    return _uniform(shape, dtype_of(dtype), low, high)


@rule("RandomUniformLike")
def _random_uniform_like(x: Value, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0) -> Tensor:
    return _uniform(x.shape, _dtype(x, dtype), low, high)


@rule("Bernoulli")
def _bernoulli(x: Tensor, *, dtype: int | None = None) -> Tensor:
    return cast(ops.lt(mt.rand(x.shape, dtype="float32"), x), _dtype(x, dtype))


@rule("Multinomial")
def _multinomial(x: Tensor, *, dtype: int = 6, sample_size: int = 1) -> Tensor:
    # The largest of the logarithms with Gumbel noise is a class, with its probability.
    shape = (x.shape[0], sample_size, x.shape[1])
    noise = ops.negative(ops.log(ops.negative(ops.log(mt.rand(shape, dtype="float32") + 1e-12)) + 1e-12))
    return cast(ops.argmax(ops.expand_dims(x, 1) + noise, -1), dtype_of(dtype))
