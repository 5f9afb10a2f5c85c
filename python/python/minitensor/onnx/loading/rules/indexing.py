"""Elements at positions that tensors say, and new tensors of positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .... import _minitensor as mt
from .... import ops
from ....ir.aten.indexing import along, grid, grid_of, put, put_reduced
from ....ir.aten.promotion import cast
from ..elements import dtype_of
from ..error import OnnxError
from ..graph import Node
from ..rule import rule
from ..values import Known, Tensor, Value, known, tensor

#: The names of reductions in the rules of PyTorch.
_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _positions(index: Tensor) -> Tensor:
    return cast(index, "int64")


@rule("Gather", moves=True)
def _gather(x: Tensor, index: Tensor, *, axis: int = 0) -> Tensor:
    return ops.take(x, _positions(index), axis)


@rule("GatherElements", moves=True)
def _gather_elements(x: Tensor, index: Tensor, *, axis: int = 0) -> Tensor:
    at = axis % x.ndim
    for k, size in enumerate(index.shape):
        if k != at and size != x.shape[k]:
            x = ops.slice(x, k, 0, size)
    return ops.gather(x, _positions(index), at)


def _flat_positions(shape: tuple[int, ...], index: Tensor, batch_dims: int = 0) -> Tensor:
    """Returns where in a row of all elements the blocks begin that an index of tuples says."""
    depth = index.shape[-1]
    sizes = shape[batch_dims : batch_dims + depth]
    strides = [math.prod(shape[batch_dims + k + 1 :]) for k in range(depth)]
    at = _positions(index)
    at = ops.where(ops.lt(at, 0), at + tensor(np.array(sizes, dtype="int64")), at)
    return ops.sum(at * tensor(np.array(strides, dtype="int64")), -1)


def _check_range(shape: tuple[int, ...], index: Tensor, batch_dims: int = 0) -> None:
    if batch_dims + index.shape[-1] > len(shape):
        raise OnnxError(f"the index has tuples of {index.shape[-1]} numbers, but the input has the shape {shape}")


@rule("GatherND", moves=True)
def _gather_nd(x: Tensor, index: Tensor, *, batch_dims: int = 0) -> Tensor:
    _check_range(x.shape, index, batch_dims)
    depth = index.shape[-1]
    block = x.shape[batch_dims + depth :]
    first = _flat_positions(x.shape, index, batch_dims)
    if batch_dims:
        batch, size = x.shape[:batch_dims], math.prod(x.shape[batch_dims:])
        starts = grid_of(batch) * size
        first = first + ops.reshape(starts, [*batch, *[1] * (first.ndim - batch_dims)])
    offsets = ops.reshape(mt.arange(math.prod(block), dtype="int64"), list(block))
    at = ops.reshape(first, [*first.shape, *[1] * len(block)]) + offsets
    return ops.take(ops.reshape(x, [x.size]), at)


def _put(x: Tensor, positions: Tensor, values: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return put(x, positions, values)
    if x.dtype.name == "bool":
        wide = put_reduced(ops.astype(x, "uint8"), positions, ops.astype(values, "uint8"), _REDUCTIONS[reduction])
        return ops.astype(wide, "bool")
    return put_reduced(x, positions, values, _REDUCTIONS[reduction])


@rule("ScatterElements")
@rule("Scatter")
def _scatter_elements(x: Tensor, index: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none") -> Tensor:
    return _put(x, along(x, axis, index), updates, reduction)


@rule("ScatterND")
def _scatter_nd(x: Tensor, index: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    _check_range(x.shape, index)
    block = x.shape[index.shape[-1] :]
    first = _flat_positions(x.shape, index)
    offsets = ops.reshape(mt.arange(math.prod(block), dtype="int64"), list(block))
    at = ops.reshape(first, [*first.shape, *[1] * len(block)]) + offsets
    return _put(x, at, updates, reduction)


@rule("TensorScatter")
def _tensor_scatter(
    cache: Tensor, update: Tensor, write_indices: Tensor | None = None, *, axis: int = -2, mode: str = "linear"
) -> Tensor:
    at = axis % cache.ndim
    size = update.shape[at]
    index = ops.reshape(mt.arange(size, dtype="int64"), [size if k == at else 1 for k in range(cache.ndim)])
    if write_indices is not None:
        index = index + ops.reshape(_positions(write_indices), [-1, *[1] * (cache.ndim - 1)])
    if mode == "circular":
        index = ops.remainder(index, cache.shape[at])
    return put(cache, along(cache, at, ops.expand(index, update.shape)), update)


@rule("OneHot")
def _one_hot(index: Tensor, depth: Known, values: Tensor, *, axis: int = -1) -> Tensor:
    count = int(depth.reshape(-1)[0])
    at = axis % (index.ndim + 1)
    found = ops.expand_dims(_positions(index), at)
    classes = ops.reshape(mt.arange(count, dtype="int64"), [count if k == at else 1 for k in range(index.ndim + 1)])
    # Negative numbers count from the end.
    is_hot = ops.logical_or(ops.eq(found, classes), ops.eq(found + count, classes))
    off, on = (ops.reshape(ops.slice(values, 0, k, k + 1), []) for k in (0, 1))
    return ops.where(is_hot, on, off)


@rule("Compress", moves=True)
def _compress(x: Tensor, condition: Known, *, axis: int | None = None) -> Tensor:
    if axis is None:
        x, axis = ops.reshape(x, [x.size]), 0
    (at,) = np.nonzero(condition[: x.shape[axis]])
    return ops.take(x, tensor(at.astype("int64")), axis)


@rule("NonZero")
def _nonzero(x: Tensor) -> Tensor:
    found = ops.nonzero(ops.reshape(x, [1]) if not x.ndim else x)
    return ops.matrix_transpose(found)


@rule("Unique")
def _unique(x: Value, *, axis: int | None = None, sorted: int = 1) -> tuple[Value, ...]:  # noqa: A002 - in ONNX
    array = known(x)
    wide = array.astype("float32") if array.dtype.name == "bfloat16" else array
    _, first, inverse, counts = np.unique(wide, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        place = np.argsort(order)
        first, inverse, counts = first[order], place[inverse], counts[order]
    # The elements are taken from the tensor, so that gradients flow.
    t = tensor(x)
    t, at = (ops.reshape(t, [t.size]), 0) if axis is None else (t, axis)
    numbers = [tensor(found.astype("int64")) for found in (first, inverse, counts)]
    return ops.take(t, numbers[0], at), *numbers


@rule("Trilu")
def _trilu(x: Tensor, k: Known | None = None, *, upper: int = 1) -> Tensor:
    offset = 0 if k is None else int(k.item())
    *_, rows, columns = x.shape
    distance = mt.arange(columns, dtype="int64") - ops.reshape(mt.arange(rows, dtype="int64"), [rows, 1])
    is_kept = ops.ge(distance, offset) if upper else ops.le(distance, offset)
    if x.dtype.name == "bool":
        return ops.logical_and(x, is_kept)
    return ops.where(is_kept, x, ops.zeros_like(x))


@rule("EyeLike")
def _eye_like(x: Value, *, dtype: int | None = None, k: int = 0) -> Tensor:
    rows, columns = x.shape
    distance = mt.arange(columns, dtype="int64") - ops.reshape(mt.arange(rows, dtype="int64"), [rows, 1])
    return ops.astype(ops.eq(distance, k), x.dtype.name if dtype is None else dtype_of(dtype))


@rule("Range")
def _range(start: Known, limit: Known, delta: Known, *, stash_type: int = 1) -> Tensor:
    first, last, step = (x.item() for x in (start, limit, delta))
    if step == 0:
        raise OnnxError("the step of the range is 0")
    count = max(math.ceil((last - first) / step), 0)
    dtype = start.dtype.name
    if start.dtype.kind in "iu":
        return grid([count], [int(step)], int(first)).astype(dtype)
    wide = mt.arange(count, dtype="int64").astype("float64") * float(step) + float(first)
    return ops.astype(wide, dtype)


@rule("ConstantOfShape")
def _constant_of_shape(shape: Known, *, value: Value = None) -> Value:
    fill = np.zeros(1, dtype="float32") if value is None else value
    sizes = tuple(shape.reshape(-1).tolist())
    one = ops.reshape(tensor(fill), [])
    return mt.full(sizes, one.item(), dtype=one.dtype) if not mt._is_recording() else ops.expand(one, sizes)


@rule("Constant")
def _constant(
    *,
    node: Node,
    value: Any = None,
    sparse_value: Any = None,
    value_float: float | None = None,
    value_floats: list[float] | None = None,
    value_int: int | None = None,
    value_ints: list[int] | None = None,
    value_string: str | None = None,
    value_strings: list[str] | None = None,
) -> Value:
    match next(iter(node.attributes.items())):
        case ("value_float" | "value_floats", numbers):
            return np.array(numbers, dtype="float32")
        case ("value_int" | "value_ints", numbers):
            return np.array(numbers, dtype="int64")
        case ("value_string" | "value_strings", texts):
            return np.array(texts, dtype=object)
        case (_, found):
            return found
