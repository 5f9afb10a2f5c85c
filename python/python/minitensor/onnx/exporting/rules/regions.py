"""Slices, and the order of axes: what views select, and how it is replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir import Sym
from ....ir.symbols import Size
from ..builder import Value
from ..call import Call
from ..reductions import reduced
from ..rule import rule

__all__ = ["order", "replaced_slice"]


def order(call: Call, rank: int) -> list[int]:
    """The axes of a transposed tensor, in the order of the result."""
    axes = list(range(rank))
    match call.op:
        case "permute_dims":
            return [axis % rank for axis in call.plain("axes")]
        case "matrix_transpose":
            return [*axes[:-2], axes[-1], axes[-2]]
        case "transpose":
            a, b = call.axis("axis0", rank), call.axis("axis1", rank)
            axes[a], axes[b] = axes[b], axes[a]
            return axes
    source, destination = call.axis("source", rank), call.axis("destination", rank)
    axes.remove(source)
    axes.insert(destination, source)
    return axes


class _Bounds:
    """The bounds of `slice` as ONNX has them."""

    def __init__(self, call: Call, shape: Sequence[Size]) -> None:
        self.axis = call.axis("axis", len(shape))
        self.step: int = call.plain("step")
        most = 2**63 - 1
        # Going down, the end before the first element is the least number: −1 is the last element.
        defaults = (0, most) if self.step > 0 else (-1, -most - 1)
        self.start, self.stop = (
            default if call.attrs[name] is None else call.attrs[name]
            for name, default in zip(("start", "stop"), defaults, strict=True)
        )
        if self._selects_nothing(call.attrs["start"], call.attrs["stop"], shape[self.axis]):
            # Going down from before the first element, ONNX selects that element.
            self.start, self.stop, self.step = 0, 0, 1

    def _selects_nothing(self, start: Any, stop: Any, size: Size) -> bool:
        """Whether no element is selected, as far as this is known."""
        is_known = isinstance(size, int) and not isinstance(start, Sym) and not isinstance(stop, Sym)
        return is_known and not range(*slice(start, stop, self.step).indices(int(size)))

    def values(self, call: Call) -> list[Value]:
        b = call.builder
        return [_bound(call, self.start), _bound(call, self.stop), b.integers([self.axis]), b.integers([self.step])]


def _bound(call: Call, value: int | Sym) -> Value:
    return call.graph.size(value.text) if isinstance(value, Sym) else call.builder.integers([value])


@rule("slice", only_moves=True)
def slice_(call: Call) -> Value:
    x = call["x"]
    assert x.shape is not None
    return call.builder.node("Slice", x, *_Bounds(call, x.shape).values(call))


def replaced_slice(call: Call, x: Value, part: Value) -> Value:
    """`x` with the elements that the slice selects replaced by those of `part`."""
    assert x.shape is not None
    b, axis = call.builder, call.axis("axis", len(x.shape))
    # The positions of the slice, along the axis.
    positions = b.node("Range", b.constant(0, "int64"), _scalar(call, x.shape[axis]), b.constant(1, "int64"))
    bounds = _Bounds(call, x.shape)
    selected = b.node("Slice", positions, *bounds.values(call)[:2], b.integers([0]), b.integers([bounds.step]))
    shape = [1] * len(x.shape)
    shape[axis] = -1
    indices = b.node("Reshape", selected, b.integers(shape))
    # The part may broadcast.
    part = b.node("Expand", part, b.shape(b.node("Slice", x, *bounds.values(call))))
    indices = b.node("Expand", indices, b.shape(part))
    return b.node("ScatterElements", x, indices, part, axis=axis)


def _scalar(call: Call, size: Any) -> Value:
    b = call.builder
    if isinstance(size, int):
        return b.constant(size, "int64")
    return b.node("Squeeze", call.graph.size(size), b.integers([0]))


@rule("unslice", only_moves=True)
def unslice(call: Call) -> Value:
    return replaced_slice(call, _zeros(call), call["x"])


def _zeros(call: Call) -> Value:
    meta = call.outputs[0]
    found = call.builder.node("Expand", call.builder.number(0, meta.dtype), call.sizes_of_result())
    found.shape = meta.shape
    return found


class _Region:
    """The attribute `region`: which elements of a whole a part has."""

    def __init__(self, call: Call) -> None:
        is_component, offset, rank, *layouts = call.plain("region")
        assert not is_component, "only complex numbers have components"
        whole, part = layouts[: 2 * rank], layouts[2 * rank :]
        self.shape = whole[:rank]
        self.part, strides = part[: len(part) // 2], part[len(part) // 2 :]
        self.repeated = [
            k for k, (n, stride) in enumerate(zip(self.part, strides, strict=True)) if n > 1 and not stride
        ]
        # The position of each address in the whole.
        addresses = _addresses(self.shape, whole[rank:], 0).reshape(-1)
        order = np.argsort(addresses)
        wanted = _addresses(self.part, strides, offset).reshape(-1)
        self._positions = order[np.searchsorted(addresses, wanted, sorter=order)]
        self._call = call

    def part_of(self, x: Value) -> Value:
        b = self._call.builder
        found = b.node("Gather", self._flat(x), b.integers(self._positions.tolist()))
        return b.node("Reshape", found, b.integers(self.part), allowzero=1)

    def replaced(self, x: Value, part: Value) -> Value:
        b = self._call.builder
        found = b.node("ScatterElements", self._flat(x), b.integers(self._positions.tolist()), self._flat(part))
        return b.node("Reshape", found, b.integers(self.shape), allowzero=1)

    def zeros(self, like: Value) -> Value:
        b = self._call.builder
        return b.node("Expand", b.number(0, like.dtype), b.integers(self.shape))

    def _flat(self, x: Value) -> Value:
        return x.builder.node("Reshape", x, x.builder.integers([-1]))


def _addresses(shape: list[int], strides: list[int], offset: int) -> np.ndarray[Any, Any]:
    found = np.full((1,) * len(shape), offset)
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = np.arange(size) * stride
        found = found + steps.reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return np.broadcast_to(found, shape)


@rule("region::part", only_moves=True)
def part(call: Call) -> Value:
    return _Region(call).part_of(call["x"])


@rule("region::replaced", only_moves=True)
def replaced(call: Call) -> Value:
    return _Region(call).replaced(call["x"], call["part"].cast(call["x"].dtype))


@rule("region::cleared", only_moves=True)
def cleared(call: Call) -> Value:
    region = _Region(call)
    zero = call.builder.node("Expand", call.builder.number(0, call["x"].dtype), call.builder.integers(region.part))
    return region.replaced(call["x"], zero)


@rule("region::spread")
def spread(call: Call) -> Value:
    region, x = _Region(call), call["part"]
    if region.repeated:
        shape = call.builder.shape(x)
        x = reduced("ReduceSum", x, region.repeated, True)
        # Elements at one place get the same sum.
        x = call.builder.node("Expand", x, shape)
    return region.replaced(region.zeros(x), x)
