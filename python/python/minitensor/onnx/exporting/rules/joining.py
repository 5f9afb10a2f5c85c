"""Joins, margins and order."""

from __future__ import annotations

from collections.abc import Callable

from ..builder import Value
from ..call import Call
from ..reductions import order
from ..rule import rule

__all__: list[str] = []


@rule("concat", only_moves=True)
def concat(call: Call) -> Value:
    values, dtype = call.inputs[0], call.outputs[0].dtype
    return call.builder.concat([v.cast(dtype) for v in values], call.axis("axis", len(values[0].shape)))


@rule("stack", only_moves=True)
def stack(call: Call) -> Value:
    values, dtype = call.inputs[0], call.outputs[0].dtype
    b = call.builder
    axis = call.axis("axis", len(values[0].shape) + 1)
    return b.concat([b.node("Unsqueeze", v.cast(dtype), b.integers([axis])) for v in values], axis)


def _margins(call: Call, rank: int) -> tuple[list[int], list[int]]:
    padding = call.plain("padding")
    missing = [0] * (rank - len(padding) // 2)
    return missing + padding[::2], missing + padding[1::2]


@rule("pad", only_moves=True)
def pad(call: Call) -> Value:
    x = call["x"]
    assert x.shape is not None
    before, after = _margins(call, len(x.shape))
    value = call.builder.number(call.plain("value"), x.dtype)
    return call.builder.node("Pad", x, call.builder.integers(before + after), value)


@rule("crop", only_moves=True)
def crop(call: Call) -> Value:
    x, b = call["x"], call.builder
    assert x.shape is not None
    before, after = _margins(call, len(x.shape))
    ends = [-n if n else 2**63 - 1 for n in after]
    axes = list(range(len(x.shape)))
    return b.node("Slice", x, b.integers(before), b.integers(ends), b.integers(axes)) if axes else x.apply("Identity")


def _sorted(call: Call, count: Callable[[Value, int], Value], is_descending: bool) -> list[Value]:
    """The values and indices in order."""
    x, b = call["x"], call.builder
    assert x.shape is not None
    if not x.shape:
        return [x.apply("Identity"), b.constant(0, "int64")]
    axis = call.axis("axis", len(x.shape))
    found = order(x, count(x, axis), axis, is_descending)
    return [b.node("GatherElements", x, found, axis=axis), found]


def _whole(x: Value, axis: int) -> Value:
    return x.builder.shape(x, axis, axis + 1)


@rule("sort")
def sort(call: Call) -> list[Value]:
    return _sorted(call, _whole, call.plain("descending"))


@rule("argsort")
def argsort(call: Call) -> Value:
    return _sorted(call, _whole, call.plain("descending"))[1]


@rule("topk")
def topk(call: Call) -> list[Value]:
    k = call.plain("k")
    return _sorted(call, lambda x, _: x.builder.integers([k]), True)
