"""Windows that slide over the last axes: which elements they read, and how they are gathered and added."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .builder import Value
from .call import Call

__all__ = ["Axis", "Table", "added", "axes_of", "batched", "each", "positions", "read", "split", "unbatched"]

#: A position for each tap of each window; −1 if a tap is outside of the volume.
Table = np.ndarray[Any, Any]


class Axis(NamedTuple):
    """The windows along an axis."""

    size: int
    windows: int
    taps: int
    stride: int
    dilation: int
    padding: int

    @property
    def span(self) -> int:
        """The number of positions from the first that windows read to the last."""
        return (self.windows - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    def positions(self) -> Table:
        """For each tap and window, the position that it reads; −1 if there is none."""
        taps, windows = np.arange(self.taps) * self.dilation, np.arange(self.windows) * self.stride
        found = taps[:, None] + windows[None, :] - self.padding
        return np.where((found >= 0) & (found < self.size), found, -1)


def axes_of(call: Call) -> list[Axis]:
    """The windows of the attribute `windows`."""
    numbers = call.plain("windows")
    return [Axis(*numbers[k : k + 6]) for k in range(0, 18, 6)]


def each(values: list[int], rank: int) -> list[int]:
    """One number for each axis."""
    return values * rank if len(values) == 1 else values


def positions(axes: Sequence[Axis]) -> Table:
    """The positions that windows over several axes read, as a table of taps and windows."""
    found = np.zeros((1, 1), int)
    for axis in axes:
        own = axis.positions()
        pairs = found[:, None, :, None] * axis.size + own[None, :, None, :]
        is_outside = (found[:, None, :, None] < 0) | (own[None, :, None, :] < 0)
        found = np.where(is_outside, -1, pairs).reshape(found.shape[0] * axis.taps, found.shape[1] * axis.windows)
    return found


def read(x: Value, table: Table, fill: float, axis: int) -> Value:
    """The elements at the positions of an axis, which becomes one axis; those outside are `fill`."""
    b = x.builder
    if (table < 0).any():
        x = b.node("Pad", x, b.integers([0, 1]), b.number(fill, x.dtype), b.integers([axis]))
    return b.node("Gather", x, b.integers(table.reshape(-1).tolist()), axis=axis)


def added(x: Value, table: Table, axes: Sequence[Axis]) -> Value:
    """Adds the elements of windows at their positions: the transpose of `read` for the last axis."""
    b, volume = x.builder, math.prod(a.size for a in axes)
    # Elements outside of the volume are added to one that is removed.
    indices = b.integers(np.where(table < 0, volume, table).reshape(-1).tolist())
    sizes = b.concat([b.shape(x, 0, -1), b.integers([volume + 1])])
    zeros = b.node("Expand", b.number(0, x.dtype), sizes)
    found = b.node("ScatterElements", zeros, b.node("Expand", indices, b.shape(x)), x, axis=-1, reduction="add")
    return b.node("Slice", found, b.integers([0]), b.integers([volume]), b.integers([-1]))


def split(x: Value, shape: tuple[int, int], axis: int) -> Value:
    """The tensor with an axis as two axes."""
    b = x.builder
    before = b.shape(x, None, axis)
    after = [b.shape(x, axis + 1)] if axis < -1 else []
    return b.node("Reshape", x, b.concat([before, b.integers(shape), *after]))


def batched(call: Call, x: Value, rank: int, axes: int = 2) -> Value:
    """The tensor with two dimensions before the axes of windows, as ONNX has it."""
    assert x.shape is not None
    if len(x.shape) == rank + 2:
        return x
    sizes = x.shape[len(x.shape) - rank - 1 :] if axes == 2 else (1, *x.shape[len(x.shape) - rank :])
    lead = 1 if len(x.shape) < rank + 2 and axes == 2 else -1
    if any(not isinstance(size, int) for size in sizes):
        return call.builder.node("Reshape", x, call.graph.sizes([lead, *sizes]))
    return call.builder.node("Reshape", x, call.builder.integers([lead, *map(int, sizes)]))


def unbatched(call: Call, found: Value, x: Value, rank: int) -> Value:
    """The inverse of `batched`, for a result."""
    assert x.shape is not None
    return (
        found
        if len(x.shape) == rank + 2
        else call.builder.node("Reshape", found, call.sizes_to_reshape(call.outputs[0].shape))
    )
