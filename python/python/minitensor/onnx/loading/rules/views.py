"""Other shapes of the same elements, parts of tensors, and padding."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from .... import _minitensor as mt
from .... import ops
from ....ir.aten.views import reshape, tiled
from ....ir.aten.windows import padded
from ..error import OnnxError
from ..graph import Node
from ..rule import rule
from ..values import Known, Tensor, Value, tensor


@rule("Identity")
def _identity(x: Value) -> Value:
    return x


@rule("Shape")
def _shape(data: Value, *, start: int = 0, end: int | None = None) -> Known:
    return np.array(data.shape, dtype="int64")[slice(start, end)] if data.shape else np.zeros(0, dtype="int64")


@rule("Size")
def _size(data: Value) -> Known:
    return np.array(math.prod(data.shape), dtype="int64")


@rule("Reshape", since=5, moves=True)
def _reshape(data: Tensor, shape: Known, *, allowzero: int = 0) -> Tensor:
    sizes = shape.reshape(-1).tolist()
    if not allowzero:
        if any(n == 0 and k >= data.ndim for k, n in enumerate(sizes)):
            raise OnnxError(f"the shape {sizes} copies a size that the input of shape {data.shape} does not have")
        sizes = [data.shape[k] if n == 0 else n for k, n in enumerate(sizes)]
    return reshape(data, sizes)


@rule("Flatten", moves=True)
def _flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    at = axis + x.ndim if axis < 0 else axis
    return ops.reshape(x, [math.prod(x.shape[:at]), math.prod(x.shape[at:])])


@rule("Transpose", moves=True)
def _transpose(x: Tensor, *, perm: list[int] | None = None) -> Tensor:
    return ops.permute_dims(x, list(reversed(range(x.ndim))) if perm is None else perm) if x.ndim > 1 else x


def _squeezed(x: Tensor, axes: Sequence[int] | None) -> Tensor:
    if axes is None:
        return ops.reshape(x, [n for n in x.shape if n != 1])
    return ops.squeeze(x, list(axes)) if axes else x


@rule("Squeeze", since=13, moves=True)
def _squeeze(x: Tensor, axes: Known | None = None) -> Tensor:
    return _squeezed(x, None if axes is None else axes.reshape(-1).tolist())


@rule("Squeeze", moves=True)
def _squeeze_1(x: Tensor, *, axes: list[int] | None = None) -> Tensor:
    return _squeezed(x, axes)


def _unsqueezed(x: Tensor, axes: Sequence[int]) -> Tensor:
    rank = x.ndim + len(axes)
    added = {axis % rank for axis in axes}
    sizes = iter(x.shape)
    return ops.reshape(x, [1 if k in added else next(sizes) for k in range(rank)])


@rule("Unsqueeze", since=13, moves=True)
def _unsqueeze(x: Tensor, axes: Known) -> Tensor:
    return _unsqueezed(x, axes.reshape(-1).tolist())


@rule("Unsqueeze", moves=True)
def _unsqueeze_1(x: Tensor, *, axes: list[int]) -> Tensor:
    return _unsqueezed(x, axes)


@rule("Concat", since=4, moves=True)
def _concat(*xs: Tensor, axis: int) -> Tensor:
    return ops.concat(list(xs), axis) if len(xs) > 1 else xs[0]


@rule("Expand", moves=True)
def _expand(x: Tensor, shape: Known) -> Tensor:
    return ops.expand(x, list(np.broadcast_shapes(x.shape, tuple(shape.reshape(-1).tolist()))))


@rule("Tile", since=6, moves=True)
def _tile(x: Tensor, repeats: Known) -> Tensor:
    return tiled(x, repeats.tolist()) if x.ndim else x


def _parts(x: Tensor, sizes: Sequence[int], axis: int) -> tuple[Tensor, ...]:
    if sum(sizes) != x.shape[axis]:
        raise OnnxError(f"the parts {list(sizes)} do not add up to the size {x.shape[axis]} of axis {axis}")
    ends = list(itertools.accumulate(sizes))
    return tuple(ops.slice(x, axis, end - size, end) for size, end in zip(sizes, ends, strict=True))


def _equal_sizes(size: int, count: int) -> list[int]:
    """Returns the sizes of parts. The last one is smaller if they cannot be equal."""
    part = -(-size // count)
    return [min(part, max(size - k * part, 0)) for k in range(count)]


@rule("Split", since=13, moves=True)
def _split(
    x: Tensor, split: Known | None = None, *, node: Node, axis: int = 0, num_outputs: int | None = None
) -> tuple[Tensor, ...]:
    sizes = _equal_sizes(x.shape[axis], len(node.outputs)) if split is None else split.tolist()
    return _parts(x, sizes, axis)


@rule("Split", since=2, moves=True)
def _split_2(x: Tensor, *, node: Node, axis: int = 0, split: list[int] | None = None) -> tuple[Tensor, ...]:
    return _parts(x, split or _equal_sizes(x.shape[axis], len(node.outputs)), axis)


@rule("SplitToSequence", moves=True)
def _split_to_sequence(x: Tensor, split: Known | None = None, *, axis: int = 0, keepdims: int = 1) -> Value:
    size = x.shape[axis]
    if split is None:
        parts = _parts(x, [1] * size, axis)
        return ([part if keepdims else ops.squeeze(part, axis) for part in parts],)
    if split.ndim:
        return (list(_parts(x, split.tolist(), axis)),)
    part = int(split.item())
    if part <= 0:
        raise OnnxError(f"the size of the parts is {part}; expected at least 1")
    return (list(_parts(x, [min(part, size - at) for at in range(0, size, part)], axis)),)


def _sliced(
    x: Tensor, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None, steps: Sequence[int] | None
) -> Tensor:
    for k, axis in enumerate(range(len(starts)) if axes is None else axes):
        size, step = x.shape[axis], 1 if steps is None else steps[k]
        start, end = starts[k], ends[k]
        # In Python, an end of -1 is the last element. Here, an end before the first element is before all of them.
        first, last, _ = slice(start, None if step < 0 and end < -size else end, step).indices(size)
        if step < 0:
            is_empty = not range(first, last, step)
            x = ops.slice(x, axis, 0, 0) if is_empty else ops.slice(x, axis, first, None if last < 0 else last, step)
        elif (first, last, step) != (0, size, 1):
            x = ops.slice(x, axis, first, max(first, last), step)
    return x


@rule("Slice", since=10, moves=True)
def _slice(x: Tensor, starts: Known, ends: Known, axes: Known | None = None, steps: Known | None = None) -> Tensor:
    lists = [None if t is None else t.tolist() for t in (axes, steps)]
    return _sliced(x, starts.tolist(), ends.tolist(), lists[0], lists[1])


@rule("Slice", moves=True)
def _slice_1(x: Tensor, *, starts: list[int], ends: list[int], axes: list[int] | None = None) -> Tensor:
    return _sliced(x, starts, ends, axes, None)


_MODES = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}


def _padded(x: Tensor, pads: Sequence[int], mode: str, value: float, axes: Sequence[int] | None) -> Tensor:
    chosen = range(x.ndim) if axes is None else [axis % x.ndim for axis in axes]
    before, after = [0] * x.ndim, [0] * x.ndim
    for k, axis in enumerate(chosen):
        before[axis], after[axis] = pads[k], pads[k + len(chosen)]
    if mode != "constant":
        return padded(x, [n for k in reversed(range(x.ndim)) for n in (before[k], after[k])], _MODES[mode])
    for axis in range(x.ndim):
        # Negative numbers remove elements.
        if before[axis] < 0 or after[axis] < 0:
            end = x.shape[axis] - max(-after[axis], 0)
            x = ops.slice(x, axis, max(-before[axis], 0), max(end, max(-before[axis], 0)))
    pairs = [max(n, 0) for k in range(x.ndim) for n in (before[k], after[k])]
    return ops.pad(x, pairs, value) if any(pairs) else x


@rule("Pad", since=11)
def _pad(
    x: Tensor, pads: Known, constant_value: Value = None, axes: Known | None = None, *, mode: str = "constant"
) -> Tensor:
    chosen = None if axes is None else axes.tolist()
    if isinstance(constant_value, np.ndarray) and float(constant_value.item()) != constant_value.item():
        # An integer that float64 does not represent.
        constant_value = tensor(constant_value)
    if not isinstance(constant_value, Tensor):
        value = 0.0 if constant_value is None else float(constant_value.item())
        return _padded(x, pads.tolist(), mode, value, chosen)
    found = _padded(x, pads.tolist(), mode, 0.0, chosen)
    # A number of a tensor is not read, so that a graph may compute it.
    is_inside = _padded(mt.full(x.shape, True, dtype="bool"), pads.tolist(), "constant", 0.0, chosen)
    return found if mode != "constant" else ops.where(is_inside, found, ops.reshape(constant_value, []))


@rule("Pad", since=2)
def _pad_2(x: Tensor, *, pads: list[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    return _padded(x, pads, mode, value, None)


@rule("CenterCropPad")
def _center_crop_pad(x: Tensor, shape: Known, *, axes: list[int] | None = None) -> Tensor:
    for axis, wanted in zip(range(x.ndim) if axes is None else axes, shape.tolist(), strict=True):
        extra = wanted - x.shape[axis]
        if extra < 0:
            start = -extra // 2
            x = ops.slice(x, axis, start, start + wanted)
        elif extra:
            before = extra // 2
            x = _padded(x, [before, extra - before], "constant", 0.0, [axis])
    return x


@rule("DepthToSpace", moves=True)
def _depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    batch, channels, *image = x.shape
    rank, r = len(image), blocksize
    blocks, depth = [r] * rank, channels // r**rank
    if mode == "DCR":
        x = ops.reshape(x, [batch, *blocks, depth, *image])
        first, at = 1, rank + 1
    else:
        x = ops.reshape(x, [batch, depth, *blocks, *image])
        first, at = 2, 1
    pairs = [axis for k in range(rank) for axis in (rank + 2 + k, first + k)]
    return ops.reshape(ops.permute_dims(x, [0, at, *pairs]), [batch, depth, *(n * r for n in image)])


@rule("SpaceToDepth", moves=True)
def _space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    batch, channels, *image = x.shape
    rank, r = len(image), blocksize
    x = ops.reshape(x, [batch, channels, *(n for size in image for n in (size // r, r))])
    sizes, blocks = [2 + 2 * k for k in range(rank)], [3 + 2 * k for k in range(rank)]
    order = [*blocks, 1] if mode == "DCR" else [1, *blocks]
    x = ops.permute_dims(x, [0, *order, *sizes])
    return ops.reshape(x, [batch, channels * r**rank, *(n // r for n in image)])


@rule("ReverseSequence")
def _reverse_sequence(x: Tensor, sequence_lens: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    time = x.shape[time_axis]
    at = ops.reshape(mt.arange(time, dtype="int64"), [1, time])
    lengths = ops.reshape(ops.astype(sequence_lens, "int64"), [-1, 1])
    index = ops.where(ops.lt(at, lengths), lengths - 1 - at, at)
    if time_axis < batch_axis:
        index = ops.swapaxes(index, 0, 1)
    shape = [n if k in (batch_axis % x.ndim, time_axis % x.ndim) else 1 for k, n in enumerate(x.shape)]
    return ops.gather(x, ops.expand(ops.reshape(index, shape), x.shape), time_axis)
