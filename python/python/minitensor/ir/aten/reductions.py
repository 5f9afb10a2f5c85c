"""Functions of rows: sums, extrema, orders."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import ops
from ..native import rule
from .promotion import Tensor, cast

Dims = int | Sequence[int] | None


def _axes(dim: Dims) -> Any:
    """Returns the axes. None and no axes are all axes."""
    return None if dim is None or (not isinstance(dim, int) and not len(dim)) else dim


def _row(x: Tensor, dim: int) -> tuple[Tensor, int]:
    """Returns a tensor with an axis: one without dimensions is a row."""
    return (x, dim) if x.ndim else (ops.reshape(x, [1]), 0)


def _reduced(x: Tensor, dim: Dims, keepdim: bool, function: Callable[..., Tensor]) -> Tensor:
    return function(x, _axes(dim), keepdim) if x.ndim else function(ops.reshape(x, [1]), None, False)


@rule("sum", "sum.dim_IntList")
def _sum(self: Tensor, out_dtype: str, dim: Dims = None, keepdim: bool = False, dtype: str | None = None) -> Tensor:
    return cast(_reduced(cast(self, out_dtype), dim, keepdim, ops.sum), out_dtype)  # type: ignore[no-any-return]


@rule("mean", "mean.dim")
def _mean(self: Tensor, out_dtype: str, dim: Dims = None, keepdim: bool = False, dtype: str | None = None) -> Tensor:
    return _reduced(cast(self, out_dtype), dim, keepdim, ops.mean)


@rule("prod", "prod.dim_int")
def _prod(self: Tensor, out_dtype: str, dim: Dims = None, keepdim: bool = False, dtype: str | None = None) -> Tensor:
    return cast(_reduced(cast(self, out_dtype), dim, keepdim, ops.prod), out_dtype)  # type: ignore[no-any-return]


def _extremum(number: Callable[..., Tensor], boolean: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def compute(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
        return _reduced(self, dim, keepdim, boolean if self.dtype.name == "bool" else number)

    return compute


rule("amax", "max")(_extremum(ops.amax, ops.any))
rule("amin", "min")(_extremum(ops.amin, ops.all))


@rule("any", "any.dim", "any.dims")
def _any(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    return self.astype("bool") if dim == [] else _reduced(self, dim, keepdim, ops.any)


@rule("all", "all.dim", "all.dims")
def _all(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    return self.astype("bool") if dim == [] else _reduced(self, dim, keepdim, ops.all)


@rule("count_nonzero", "count_nonzero.dim_IntList")
def _count_nonzero(self: Tensor, dim: Dims = None) -> Tensor:
    return _reduced(self, dim, False, ops.count_nonzero)


def _position(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def compute(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        x = ops.astype(self, "uint8") if self.dtype.name == "bool" else self
        if dim is None:
            found = function(ops.reshape(x, [x.size]), 0, False)
            return ops.reshape(found, [1] * x.ndim) if keepdim else found
        return _reduced(x, dim, keepdim, function)

    return compute


_argmax, _argmin = _position(ops.argmax), _position(ops.argmin)
rule("argmax")(_argmax)
rule("argmin")(_argmin)


def _with_position(extremum: Callable[..., Tensor], position: Callable[..., Tensor]) -> Callable[..., list[Tensor]]:
    def compute(self: Tensor, dim: int, keepdim: bool = False) -> list[Tensor]:
        return [extremum(self, dim, keepdim), position(self, dim, keepdim)]

    return compute


rule("max.dim")(_with_position(_extremum(ops.amax, ops.any), _argmax))
rule("min.dim")(_with_position(_extremum(ops.amin, ops.all), _argmin))


def _correction(correction: float | None, unbiased: bool) -> float:
    return float(unbiased) if correction is None else float(correction)


def _spread(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def compute(
        self: Tensor,
        dim: Dims = None,
        unbiased: bool = True,
        keepdim: bool = False,
        correction: float | None = None,
    ) -> Tensor:
        return function(self, _axes(dim), _correction(correction, unbiased), keepdim)

    return compute


_var = _spread(ops.var)
rule("var", "var.dim", "var.correction")(_var)
rule("std", "std.dim", "std.correction")(_spread(ops.std))


def _spread_and_mean(function: Callable[..., Tensor]) -> Callable[..., list[Tensor]]:
    spread = _spread(function)

    def compute(
        self: Tensor,
        dim: Dims = None,
        unbiased: bool = True,
        keepdim: bool = False,
        correction: float | None = None,
    ) -> list[Tensor]:
        return [spread(self, dim, unbiased, keepdim, correction), ops.mean(self, _axes(dim), keepdim)]

    return compute


rule("var_mean", "var_mean.dim", "var_mean.correction")(_spread_and_mean(ops.var))
rule("std_mean", "std_mean.dim", "std_mean.correction")(_spread_and_mean(ops.std))


@rule("logsumexp")
def _logsumexp(self: Tensor, dim: Dims, out_dtype: str, keepdim: bool = False) -> Tensor:
    return _reduced(cast(self, out_dtype), dim, keepdim, ops.logsumexp)


@rule("linalg_vector_norm", "norm.ScalarOpt_dim", "norm.Scalar", "norm.ScalarOpt_dim_dtype", in_steps=True)
def _norm(
    self: Tensor,
    out_dtype: str,
    ord: float = 2,  # noqa: A002 - the schema
    p: float | None = None,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: str | None = None,
) -> Tensor:
    order = float(ord if p is None else p)
    x = ops.abs(cast(self, out_dtype))
    if math.isinf(order):
        return _reduced(x, dim, keepdim, ops.amax if order > 0 else ops.amin)
    if order == 0:
        return _reduced(ops.astype(ops.ne(x, 0.0), out_dtype), dim, keepdim, ops.sum)
    if order == 1:
        return _reduced(x, dim, keepdim, ops.sum)
    if order == 2:
        return ops.sqrt(_reduced(ops.square(x), dim, keepdim, ops.sum))
    return ops.power(_reduced(ops.power(x, order), dim, keepdim, ops.sum), 1.0 / order)


@rule("cumsum")
def _cumsum(self: Tensor, dim: int, out_dtype: str, dtype: str | None = None) -> Tensor:
    x, axis = _row(cast(self, out_dtype), dim)
    return ops.reshape(ops.cumsum(x, axis), self.shape)


@rule("cumprod", in_steps=True)
def _cumprod(self: Tensor, dim: int, out_dtype: str, dtype: str | None = None) -> Tensor:
    x, axis = _row(cast(self, out_dtype), dim)
    return ops.reshape(cumulative_product(x, axis), self.shape)


def cumulative_product(x: Tensor, axis: int) -> Tensor:
    """Returns, for each element along an axis, the product of the elements up to itself."""
    size, step = x.shape[axis], 1
    # Each element becomes the product up to itself, in steps of doubled length.
    while step < size:
        product = ops.slice(x, axis, step, size) * ops.slice(x, axis, 0, size - step)
        x = ops.concat([ops.slice(x, axis, 0, step), product], axis)
        step *= 2
    return x


def _sortable(x: Tensor) -> Tensor:
    return ops.astype(x, "uint8") if x.dtype.name == "bool" else x


@rule("sort", "sort.stable")
def _sort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None) -> list[Tensor]:
    x, axis = _row(_sortable(self), dim)
    found = ops.sort(x, axis, descending)
    values, indices = found.values, found.indices
    return [ops.reshape(cast(values, self.dtype.name), self.shape), ops.reshape(indices, self.shape)]


@rule("argsort", "argsort.stable")
def _argsort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Tensor:
    return _sort(self, dim, descending)[1]  # type: ignore[no-any-return]


@rule("topk")
def _topk(
    self: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002 - the schema
) -> list[Tensor]:
    x, axis = _row(_sortable(self), dim)
    if largest:
        values, indices = ops.topk(x, k, axis)
    else:
        ordered = ops.sort(x, axis)
        values, indices = (ops.slice(t, axis, 0, k) for t in (ordered.values, ordered.indices))
    shape = values.shape if self.ndim else ()
    return [ops.reshape(cast(values, self.dtype.name), shape), ops.reshape(indices, shape)]


@rule("diff")
def _diff(
    self: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    parts = [part for part in (prepend, self, append) if part is not None]
    x = ops.concat(parts, dim) if len(parts) > 1 else self
    for _ in range(n):
        size = x.shape[dim]
        after, before = ops.slice(x, dim, 1, size), ops.slice(x, dim, 0, max(size - 1, 0))
        x = ops.logical_xor(after, before) if x.dtype.name == "bool" else ops.subtract(after, before)
    return x
