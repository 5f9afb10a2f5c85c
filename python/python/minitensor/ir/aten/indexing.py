"""Elements at positions that tensors say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import _minitensor as mt
from ... import ops
from ..native import rule
from .promotion import Tensor, cast, is_float
from .views import bounds, part


def grid(size: Sequence[int], stride: Sequence[int], offset: int = 0) -> Tensor:
    """Returns the positions `offset + i · stride` of a shape."""
    found = mt.full(tuple(size), offset, dtype="int64")
    for axis, (count, step) in enumerate(zip(size, stride, strict=True)):
        steps = mt.arange(count, dtype="int64") * step
        found = found + ops.reshape(steps, [count if i == axis else 1 for i in range(len(size))])
    return found


def _positions(index: Tensor) -> Tensor:
    return cast(index, "int64")  # type: ignore[no-any-return]


@rule("index_select")
def _index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    if not self.ndim:
        return ops.reshape(self, [])
    return ops.index_select(self, ops.reshape(_positions(index), [index.size]), dim)


@rule("embedding")
def _embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False) -> Tensor:
    return ops.embedding(weight, _positions(indices))


@rule("take")
def _take(self: Tensor, index: Tensor) -> Tensor:
    return ops.take(ops.reshape(self, [self.size]), _positions(index))


@rule("one_hot", when=lambda attrs: attrs.get("num_classes", -1) != -1)
def _one_hot(self: Tensor, num_classes: int = -1) -> Tensor:
    return ops.one_hot(self, num_classes)


@rule("gather")
def _gather(self: Tensor, dim: int, index: Tensor) -> Tensor:
    if not self.ndim or not index.ndim:
        row = ops.reshape(self, [self.size])
        return ops.reshape(ops.take(row, ops.reshape(_positions(index), [index.size])), index.shape)
    axis = dim % self.ndim
    x = self
    for i, size in enumerate(index.shape):
        if i != axis and size != x.shape[i]:
            x = part(x, i, 0, size)
    return ops.gather(x, _positions(index), axis)


Indices = Sequence[Tensor | None]


def _at(x: Tensor, indices: Indices) -> Tensor:
    """`x[:, i, j]` for integers and masks; None is an axis as it is."""
    return x[_index(indices)]


def _index(indices: Indices) -> tuple[Any, ...]:
    def position(index: Tensor | None) -> Any:
        if index is None:
            return slice(None)
        return index if index.dtype.name in ("bool", "int64") else ops.astype(index, "int64")

    return tuple(map(position, indices))


def _has_mask(indices: Indices) -> bool:
    return any(index is not None and index.dtype.name in ("bool", "uint8") for index in indices)


@rule("index.Tensor", "_unsafe_index.Tensor")
def _index_tensor(self: Tensor, indices: Indices) -> Tensor:
    return _at(self, indices)


@rule("masked_select")
def _masked_select(self: Tensor, mask: Tensor) -> Tensor:
    shape = (mt.zeros(self.shape) + mt.zeros(mask.shape)).shape
    return ops.expand(self, shape)[ops.expand(mask, shape)]


@rule("nonzero")
def _nonzero(self: Tensor) -> Tensor:
    return ops.nonzero(self)


@rule("nonzero_static")
def _nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    return ops.nonzero(self, size, fill_value)


@rule("argwhere")
def _argwhere(self: Tensor) -> Tensor:
    return ops.nonzero(self)


@rule("index_put", "_unsafe_index_put")
def _index_put(
    self: Tensor, indices: Indices, values: Tensor, out_dtype: str, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    index = _index(indices)
    added = cast(values, out_dtype)
    if len(indices) == 1 and not accumulate and _has_mask(indices) and added.size == 1:
        mask = indices[0]
        assert mask is not None
        full = ops.reshape(cast(mask, "bool"), [*mask.shape, *[1] * (self.ndim - mask.ndim)])
        return ops.where(full, ops.reshape(added, []), self)
    # A row of all positions: those that are indexed, and where each value goes.
    flat = grid_of(self.shape)[index]
    return put(self, flat, ops.expand(added, flat.shape), accumulate)


def grid_of(shape: Sequence[int]) -> Tensor:
    """Returns the position of each element in a row of all."""
    return ops.reshape(mt.arange(math.prod(shape), dtype="int64"), list(shape))


def put(x: Tensor, positions: Tensor, values: Tensor, accumulate: bool = False) -> Tensor:
    """Replaces the elements at positions in a row of all, or adds to them. The last value for a position is kept."""
    count, n = x.size, positions.size
    if not n:
        return x
    if x.dtype.name == "bool":
        return ops.astype(put(ops.astype(x, "uint8"), positions, ops.astype(values, "uint8"), accumulate), "bool")
    flat, given = ops.reshape(positions, [n]), ops.reshape(values, [n])
    row = ops.reshape(x, [count])
    if accumulate:
        return ops.reshape(row + ops.scatter(given, flat, count, 0), x.shape)
    # Equal positions become neighbours, in their order; the last of them is kept.
    order = ops.argsort(flat, 0)
    sorted_positions = ops.take(flat, order)
    is_last = ops.ne(ops.slice(sorted_positions, 0, 0, n - 1), ops.slice(sorted_positions, 0, 1, n))
    is_last = ops.concat([is_last, mt.full((1,), True, dtype="bool")], 0)
    kept = ops.where(is_last, ops.take(given, order), mt.zeros((), dtype=x.dtype))
    found = ops.scatter(kept, sorted_positions, count, 0)
    is_set = ops.gt(ops.scatter(ops.astype(is_last, "int32"), sorted_positions, count, 0), 0)
    return ops.reshape(ops.where(is_set, found, row), x.shape)


def along(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """Returns the positions, in a row of all elements of `x`, that an index along an axis means."""
    axis = dim % max(x.ndim, 1)
    strides = [math.prod(x.shape[i + 1 :]) for i in range(x.ndim)]
    others = [0 if i == axis else s for i, s in enumerate(strides)]
    at = _positions(index)
    if not x.ndim:
        return ops.reshape(at, [at.size]) * 0
    at = ops.where(ops.lt(at, 0), at + x.shape[axis], at)
    return grid(index.shape, others) + at * strides[axis]


@rule("scatter.src")
def _scatter(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return put(self, along(self, dim, index), _cropped(src, index.shape))


@rule("scatter.value")
def _scatter_value(self: Tensor, dim: int, index: Tensor, value: Any, out_dtype: str) -> Tensor:
    return put(self, along(self, dim, index), mt.full(index.shape, cast(value, out_dtype), dtype=out_dtype))


@rule("scatter_add")
def _scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return put(self, along(self, dim, index), _cropped(src, index.shape), True)


@rule("index_add")
def _index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, out_dtype: str, alpha: float = 1) -> Tensor:
    if not self.ndim:
        return ops.reshape(
            _index_add(ops.reshape(self, [1]), 0, index, ops.reshape(source, [-1]), out_dtype, alpha), []
        )
    axis = dim % self.ndim
    wide = ops.expand(ops.reshape(index, [-1 if i == axis else 1 for i in range(self.ndim)]), source.shape)
    added = source if alpha == 1 else source * cast(alpha, out_dtype)
    return put(self, along(self, dim, wide), added, True)


def _cropped(x: Tensor, shape: Sequence[int]) -> Tensor:
    for i, size in enumerate(shape):
        if x.shape[i] != size:
            x = part(x, i, 0, size)
    return x


@rule("scatter_reduce.two")
def _scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, out_dtype: str, include_self: bool = True
) -> Tensor:
    return put_reduced(self, along(self, dim, index), _cropped(src, index.shape), reduce, include_self)


def put_reduced(x: Tensor, positions: Tensor, values: Tensor, reduce: str, include_self: bool = True) -> Tensor:
    """Reduces the values for each position in a row of all elements: `sum`, `mean`, `prod`, `amax` or `amin`."""
    count, n = x.size, positions.size
    if not n:
        return x
    flat, given, row = ops.reshape(positions, [n]), ops.reshape(values, [n]), ops.reshape(x, [count])
    if include_self:
        flat, given = ops.concat([mt.arange(count, dtype="int64"), flat], 0), ops.concat([row, given], 0)
    hits = ops.scatter(mt.ones(flat.shape, dtype="int64"), flat, count, 0)
    if reduce in ("sum", "mean"):
        found = ops.scatter(given, flat, count, 0)
        if reduce == "mean":
            divisor = ops.maximum(hits, 1)
            is_of_floats = is_float(x.dtype.name)
            found = found / ops.astype(divisor, x.dtype) if is_of_floats else ops.floor_divide(found, divisor)
    elif reduce == "prod":
        found = _products(given, flat, count)
    else:
        # Sorted by value, then by position: the last of equal positions is the extremum.
        order = ops.argsort(given, 0, reduce == "amin")
        found = put(row, ops.take(flat, order), ops.take(given, order))
    return ops.reshape(ops.where(ops.gt(hits, 0), found, row), x.shape)


def _products(values: Tensor, positions: Tensor, count: int) -> Tensor:
    """Returns the products of the values with equal positions: sums of logarithms would lose digits."""
    n = values.size
    order = ops.argsort(positions, 0)
    p, v = ops.take(positions, order), ops.take(values, order)
    step = 1
    # Each value becomes the product of its group up to itself, in steps of doubled length.
    while step < n:
        same = ops.eq(ops.slice(p, 0, step, n), ops.slice(p, 0, 0, n - step))
        product = ops.slice(v, 0, step, n) * ops.slice(v, 0, 0, n - step)
        v = ops.concat([ops.slice(v, 0, 0, step), ops.where(same, product, ops.slice(v, 0, step, n))], 0)
        step *= 2
    return put(mt.ones(count, dtype=v.dtype), p, v)


@rule("masked_scatter")
def _masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    shape = (mt.zeros(self.shape) + mt.zeros(mask.shape)).shape
    chosen = ops.reshape(ops.expand(mask, shape), [math.prod(shape)])
    # The values are read one after the other.
    order = ops.cumsum(ops.astype(chosen, "int64"), 0) - 1
    order = ops.minimum(ops.maximum(order, 0), max(source.size - 1, 0))
    values = ops.take(ops.reshape(source, [source.size]), order)
    x = ops.reshape(ops.expand(self, shape), [math.prod(shape)])
    return ops.reshape(ops.where(chosen, values, x), shape)


def _replaced(x: Tensor, region: tuple[slice | int, ...], value: Tensor) -> Tensor:
    positions = grid_of(x.shape)[region]
    return put(x, positions, ops.expand(cast(value, x.dtype.name), positions.shape))


@rule("select_scatter")
def _select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    axis = dim % self.ndim
    return _replaced(self, (*[slice(None)] * axis, index), src)


@rule("slice_scatter")
def _slice_scatter(
    self: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    axis = dim % self.ndim
    first, last = bounds(self.shape[axis], start, end)
    if (first, last, step) == (0, self.shape[axis], 1):
        return ops.expand(cast(src, self.dtype.name), self.shape)
    if step != 1:
        return _replaced(self, (*[slice(None)] * axis, slice(first, last, step)), src)
    parts = [
        part(self, axis, 0, first),
        cast(src, self.dtype.name),
        part(self, axis, last, self.shape[axis] - last),
    ]
    return ops.concat([p for p in parts if p.shape[axis]], axis)


@rule("diagonal_scatter")
def _diagonal_scatter(self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    from .views import _diagonal

    return put(self, _diagonal(grid_of(self.shape), offset, dim1, dim2), src)


@rule("bucketize.Tensor")
def _bucketize(self: Tensor, boundaries: Tensor, out_int32: bool = False, right: bool = False) -> Tensor:
    wide = ops.expand_dims(self, -1)
    is_below = ops.le(boundaries, wide) if right else ops.lt(boundaries, wide)
    return ops.sum(ops.astype(is_below, "int32" if out_int32 else "int64"), -1, dtype="int32" if out_int32 else "int64")
