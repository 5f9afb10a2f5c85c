"""Reductions, and functions of rows: positions of extrema, cumulative sums, orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import _minitensor as mt
from .... import ops
from ....ir.aten.promotion import cast
from ....ir.aten.reductions import cumulative_product
from ..rule import rule
from ..values import Known, Tensor

#: A function of a tensor, its axes, and whether they remain with size 1.
Reduction = Callable[[Tensor, list[int], bool], Tensor]


def _sum(x: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    return cast(ops.sum(x, axes, keepdims), x.dtype.name)


def _prod(x: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    return cast(ops.prod(x, axes, keepdims), x.dtype.name)


def _mean(x: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    return cast(ops.mean(x, axes, keepdims), x.dtype.name)


def _l1(x: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    return _sum(ops.abs(x), axes, keepdims)


def _l2(x: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    return cast(ops.sqrt(_sum_square(x, axes, keepdims)), x.dtype.name)


def _log_sum(x: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    return cast(ops.log(_sum(x, axes, keepdims)), x.dtype.name)


def _sum_square(x: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    return _sum(x * x, axes, keepdims)


def _log_sum_exp(x: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    if any(x.shape[axis] == 0 for axis in axes):
        return ops.log(_sum(x, axes, keepdims))
    return cast(ops.logsumexp(x, axes, keepdims), x.dtype.name)


def _extremum(number: Callable[..., Tensor], boolean: Callable[..., Tensor], sign: int) -> Reduction:
    def compute(x: Tensor, axes: list[int], keepdims: bool) -> Tensor:
        if x.dtype.name == "bool":
            return boolean(x, axes, keepdims)
        if any(x.shape[axis] == 0 for axis in axes):
            # The extremum of nothing is that of the other end.
            shape = [1 if k in axes else n for k, n in enumerate(x.shape)]
            found = mt.full(tuple(shape), _limit(x.dtype, -sign), dtype=x.dtype)
            return found if keepdims else ops.squeeze(found, axes)
        return number(x, axes, keepdims)

    return compute


def _limit(dtype: Any, sign: int) -> Any:
    """Returns the greatest or the least number of a dtype."""
    if dtype.is_floating_point:
        return sign * float("inf")
    bits = 8 * dtype.itemsize
    if dtype.kind == "unsigned":
        return 2**bits - 1 if sign > 0 else 0
    return 2 ** (bits - 1) - 1 if sign > 0 else -(2 ** (bits - 1))


_REDUCTIONS: dict[str, Reduction] = {
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _extremum(ops.amax, ops.any, 1),
    "ReduceMean": _mean,
    "ReduceMin": _extremum(ops.amin, ops.all, -1),
    "ReduceProd": _prod,
    "ReduceSum": _sum,
    "ReduceSumSquare": _sum_square,
}


def _reduced(x: Tensor, axes: list[int] | None, keepdims: int, function: Reduction) -> Tensor:
    # Without axes, all are reduced. A tensor without dimensions is its own row.
    chosen = sorted({axis % x.ndim for axis in axes}) if axes else list(range(x.ndim))
    if not x.ndim:
        return ops.reshape(function(ops.reshape(x, [1]), [0], False), [])
    return function(x, chosen, bool(keepdims))


def _by_input(function: Reduction) -> Callable[..., Tensor]:
    """The axes are an input."""

    def compute(data: Tensor, axes: Known | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
        given = None if axes is None else axes.reshape(-1).tolist()
        if not given and noop_with_empty_axes:
            # Each element is a set of its own.
            return ops.reshape(function(ops.reshape(data, [*data.shape, 1]), [data.ndim], False), data.shape)
        return _reduced(data, given, keepdims, function)

    return compute


def _by_attribute(function: Reduction) -> Callable[..., Tensor]:
    """The axes are an attribute."""

    def compute(data: Tensor, *, axes: list[int] | None = None, keepdims: int = 1) -> Tensor:
        return _reduced(data, axes, keepdims, function)

    return compute


for _name, _function in _REDUCTIONS.items():
    rule(_name)(_by_attribute(_function))
    rule(_name, since=13 if _name == "ReduceSum" else 18)(_by_input(_function))


def _position(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def compute(data: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
        if not select_last_index:
            return function(data, axis, bool(keepdims))
        return (data.shape[axis] - 1) - function(ops.flip(data, axis), axis, bool(keepdims))

    return compute


rule("ArgMax")(_position(ops.argmax))
rule("ArgMin")(_position(ops.argmin))


def _cumulative(function: Callable[[Tensor, int], Tensor], neutral: int) -> Callable[..., Tensor]:
    def compute(x: Tensor, axis: Known, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
        at = int(axis.item()) % x.ndim
        found = ops.flip(x, at) if reverse else x
        if exclusive:
            first = ops.zeros_like(ops.slice(found, at, 0, 1)) + neutral
            found = ops.concat([first, ops.slice(found, at, 0, max(x.shape[at] - 1, 0))], at)
        found = cast(function(found, at), x.dtype.name)
        return ops.flip(found, at) if reverse else found

    return compute


rule("CumSum")(_cumulative(ops.cumsum, 0))
rule("CumProd")(_cumulative(cumulative_product, 1))


@rule("TopK", since=10)
def _topk(x: Tensor, k: Known, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Tensor, Tensor]:  # noqa: A002 - in ONNX
    count = int(k.item())
    found = ops.sort(x, axis, bool(largest))
    return ops.slice(found.values, axis, 0, count), ops.slice(found.indices, axis, 0, count)
