"""Selection by position."""

from __future__ import annotations

import numpy as np

from ..builder import Value
from ..call import Call
from ..rule import rule

__all__: list[str] = []


@rule("gather", only_moves=True)
def gather(call: Call) -> Value:
    x, index = _rows(call, call["x"], call["index"])
    found = call.builder.node("GatherElements", x, index, axis=-1)
    return _restored(call, found)


def _rank(call: Call) -> int:
    return max(call.ranks())


def _rows(call: Call, x: Value, index: Value) -> tuple[Value, Value]:
    """The tensor and the indices with the chosen axis last, and with the same batch dimensions."""
    b, rank = call.builder, _rank(call)
    x, index = (_with_rank(v, rank) for v in (x, index))
    if rank == 0:
        return tuple(b.node("Unsqueeze", v, b.integers([0])) for v in (x, index))  # type: ignore[return-value]
    axis = call.axis("axis", rank)
    order = [*(k for k in range(rank) if k != axis), axis]
    x, index = (_transposed(v, order) for v in (x, index))
    assert x.shape is not None and index.shape is not None
    if x.shape[:-1] != index.shape[:-1]:
        batch = [n if m == 1 else m for n, m in zip(x.shape[:-1], index.shape[:-1], strict=True)]
        x, index = (b.node("Expand", v, call.graph.sizes([*batch, v.shape[-1]])) for v in (x, index))  # type: ignore[index]
    return x, index


def _with_rank(x: Value, rank: int) -> Value:
    assert x.shape is not None
    missing = rank - len(x.shape)
    if not missing:
        return x
    found = x.builder.node("Unsqueeze", x, x.builder.integers(range(missing)))
    found.shape = (1,) * missing + x.shape
    return found


def _transposed(x: Value, order: list[int]) -> Value:
    if order == sorted(order):
        return x
    assert x.shape is not None
    found = x.builder.node("Transpose", x, perm=order)
    found.shape = tuple(x.shape[k] for k in order)
    return found


def _restored(call: Call, found: Value) -> Value:
    b, rank = call.builder, _rank(call)
    if rank == 0:
        return b.node("Squeeze", found, b.integers([0]))
    axis = call.axis("axis", rank)
    order = [*(k for k in range(rank) if k != axis), axis]
    return _transposed_back(found, order)


def _transposed_back(x: Value, order: list[int]) -> Value:
    if order == sorted(order):
        return x
    return x.builder.node("Transpose", x, perm=[order.index(k) for k in range(len(order))])


@rule("scatter")
def scatter(call: Call) -> Value:
    x, index = _rows(call, call["x"], call["index"])
    b = call.builder
    batch = b.shape(index, 0, -1)
    zeros = b.node("Expand", b.number(0, x.dtype), b.concat([batch, b.integers([call.plain("size")])]))
    return _restored(call, _added(zeros, index, x, -1))


def _added(zeros: Value, index: Value, x: Value, axis: int) -> Value:
    """Adds elements at indices. Runtimes add the numbers of few dtypes."""
    return zeros.builder.node("ScatterElements", zeros, index, x, axis=axis, reduction="add")


@rule("embedding", "indexing::take_rows", only_moves=True)
def embedding(call: Call) -> Value:
    table = call["weight" if call.op == "embedding" else "table"]
    return call.builder.node("Gather", table, call["index"], axis=0)


@rule("scatter_rows", "indexing::added_rows")
def scatter_rows(call: Call) -> Value:
    b = call.builder
    x, index = call["x" if call.op == "scatter_rows" else "d"], call["index"].cast("int64")
    rows = b.node("Reshape", index, b.integers([-1]))
    sizes = b.concat([b.shape(rows), call.graph.size(call.outputs[0].shape[1])])
    x = b.node("Reshape", x, sizes, allowzero=1)
    zeros = b.node("Expand", b.number(0, x.dtype), call.sizes_of_result())
    column = b.node("Unsqueeze", rows, b.integers([1]))
    return _added(zeros, b.node("Expand", column, b.shape(x)), x, 0)


@rule("take", only_moves=True)
def take(call: Call) -> Value:
    x = call["x"]
    assert x.shape is not None
    return call.builder.node("Gather", x, _index(call["indices"]), axis=call.axis("axis", len(x.shape)))


def _index(x: Value) -> Value:
    return x if x.dtype == "int32" else x.cast("int64")


@rule("index", only_moves=True)
def index(call: Call) -> Value:
    b, x = call.builder, call["x"]
    indices: list[Value] = [_index(i) for i in call.inputs[1]]
    if len(indices) == 1:
        return b.node("Gather", x, indices[0], axis=0)
    # The indices of one element are a row.
    wide = [i.cast("int64") for i in indices]
    total = wide[0] * 0
    for i in wide[1:]:
        total = total + i * 0
    shape = b.shape(total)
    columns = [b.node("Unsqueeze", b.node("Expand", i, shape), b.integers([-1])) for i in wide]
    return b.node("GatherND", x, b.concat(columns, -1))


@rule("indexing::positions")
def positions(call: Call) -> Value:
    size, b = call.attrs["size"], call.builder
    many = b.constant(size, "int64") if isinstance(size, int) else call.graph.size(size.text)
    every = b.node("Range", b.constant(0, "int64"), many, b.constant(1, "int64"), dtype="int64")
    return every.cast(str(call.attrs["dtype"]))


@rule("indexing::wrap")
def wrap(call: Call) -> Value:
    index, size = call["index"], call.attrs["size"]
    many = call.builder.number(size, "int64") if isinstance(size, int) else call.graph.size(size.text)
    return call.builder.where(index < 0, index + many, index)


@rule("nonzero")
def nonzero(call: Call) -> Value:
    x, b = call["x"], call.builder
    mask = x if x.dtype == "bool" else ~x.equal(0)
    rows = b.node("Transpose", b.node("NonZero", mask, dtype="int64"), perm=[1, 0])
    size = call.plain("size")
    return rows if size is None else with_rows(rows, size, b.constant(call.plain("fill_value"), "int64"))


def with_rows(x: Value, size: int, fill: Value) -> Value:
    """Cuts a tensor to a number of rows, or fills it up to that number."""
    b = x.builder
    filling = b.node("Expand", fill, b.concat([b.integers([size]), b.shape(x, 1)]))
    return b.node("Slice", b.concat([x, filling]), b.integers([0]), b.integers([size]))


@rule("one_hot")
def one_hot(call: Call) -> Value:
    classes = call.builder.integers(range(call.plain("num_classes")))
    column = call.builder.node("Unsqueeze", call["index"], call.builder.integers([-1]))
    return column.equal(classes).cast("int64")


def _triangle(call: Call, upper: int) -> Value:
    return call.builder.node("Trilu", call["x"], call.builder.constant(_diagonal(call), "int64"), upper=upper)


def _diagonal(call: Call) -> int:
    # The last diagonals of any matrix.
    k: int = call.plain("k")
    return int(np.clip(k, -(2**31), 2**31))


@rule("tril")
def tril(call: Call) -> Value:
    return _triangle(call, 0)


@rule("triu")
def triu(call: Call) -> Value:
    return _triangle(call, 1)
