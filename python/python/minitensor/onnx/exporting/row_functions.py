"""The functions of whole rows of programs, as nodes of ONNX: one table.

The result has a number for each element of a row, and depends on where the elements are. All rows are along one axis,
which is counted from the last.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ..._definitions import operands_of
from . import reductions
from .builder import Value
from .leaves import leaf
from .primitives import PRIMITIVES

__all__ = ["ROW_FUNCTIONS"]

#: The largest distance of a shift, which any row is shorter than.
_FARTHEST = 2**62


def _part(x: Value, start: int, end: int, axis: int, step: int = 1) -> Value:
    b = x.builder
    return b.node("Slice", x, b.integers([start]), b.integers([end]), b.integers([axis]), b.integers([step]))


def _full(value: float, like: Value, shape: Value) -> Value:
    """A tensor of equal numbers."""
    return like.builder.node("Expand", like.builder.number(value, like.dtype), shape)


def _together(*rows: Value) -> tuple[Value, ...]:
    """Tensors in the shape to which they broadcast."""
    b = rows[0].builder
    whole = functools.reduce(lambda x, y: b.node("Expand", x, b.shape(y)), rows)
    return tuple(b.node("Expand", x, b.shape(whole)) for x in rows)


def shift(x: Value, axis: int, places: int) -> Value:
    """The element at this distance before each; 0 outside of the row."""
    distance = min(abs(places), _FARTHEST)
    if distance == 0:
        return x
    zeros = _full(0, x, x.builder.shape(_part(x, 0, distance, axis)))
    if places > 0:
        return x.builder.concat([zeros, _part(x, 0, -distance, axis)], axis)
    return x.builder.concat([_part(x, distance, _FARTHEST, axis), zeros], axis)


def reverse(x: Value, axis: int) -> Value:
    """The elements in reverse order."""
    return _part(x, -1, -(2**63), axis, -1)


def _scanned(step: Callable[..., tuple[Value, ...]], starts: list[float], rows: list[Value], axis: int) -> list[Value]:
    """For each element, what `step` returns for the results before it, which are `starts` at first, and the elements.

    onnxruntime cannot scan empty rows, or put results along another axis than the first if there are none. So the rows
    are along the second of three axes, begin with an element whose result is not used, and are transposed at the end.
    """
    dtype, b = rows[0].dtype, rows[0].builder
    shape = b.shape(rows[0])
    before, after = (reductions.reduced("ReduceProd", sizes, [0], True) for sizes in _batch(rows[0], axis))
    one = _full(starts[0], rows[0], b.concat([before, b.integers([1]), after]))
    sizes = b.concat([before, b.shape(rows[0], *_bounds(axis)), after])
    given = [b.concat([one, b.node("Reshape", x, sizes, allowzero=1)], 1) for x in rows]

    def body(*values: Value) -> list[Value]:
        found = step(*values)
        return [*found, *(value.apply("Identity") for value in found)]

    count = len(starts)
    states = [_full(start, rows[0], b.concat([before, after])) for start in starts]
    found = b.nodes_of(
        "Scan",
        [*states, *given],
        [dtype] * 2 * count,
        body=b.subgraph([dtype] * (count + len(rows)), body),
        num_scan_inputs=len(rows),
        scan_input_axes=[1] * len(rows),
    )
    turned = [b.node("Transpose", _part(x, 1, _FARTHEST, 0), perm=[1, 0, 2]) for x in found[count:]]
    return [b.node("Reshape", x, shape, allowzero=1) for x in turned]


def _batch(x: Value, axis: int) -> tuple[Value, Value]:
    """The sizes of the axes before and after an axis."""
    b = x.builder
    return b.shape(x, 0, axis), b.shape(x, axis + 1) if axis < -1 else b.integers([])


def cummax(x: Value, axis: int) -> Value:
    """The largest element up to each, or NaN if there is one."""
    return _scanned(lambda top, x: (top.apply("Max", x),), [-math.inf], [x], axis)[0]


def recurrence(x: Value, a: Value, axis: int) -> Value:
    """`hᵢ = aᵢ hᵢ₋₁ + xᵢ`, and `h₀ = x₀`."""
    x, a = _together(x, a)
    # The first factor is not read: it may be infinite.
    first = _full(0, a, a.builder.shape(_part(a, 0, 1, axis)))
    a = a.builder.concat([first, _part(a, 1, _FARTHEST, axis)], axis)
    return _scanned(lambda h, x, a: (a * h + x,), [0], [x, a], axis)[0]


def scan(*operands: Any) -> Value:
    """A result of `h[i] = step(h[i - 1], x[i])`, and `h[0] = x[0]`, where the step is a program."""
    *given, axis, step, output = operands
    rows = _together(*given)
    b, dtype = rows[0].builder, rows[0].dtype
    count = len(step["outputs"])
    parts = ((1, _part(rows[0], 0, 1, axis)), (0, _part(rows[0], 1, _FARTHEST, axis)))
    is_first = b.concat([_full(value, part, b.shape(part)) for value, part in parts], axis)

    def next_of(*values: Value) -> tuple[Value, ...]:
        *inputs, is_first = values
        inner = is_first.builder
        found: list[Value] = []
        for name, *numbers in step["nodes"]:
            uses = operands_of((name, *numbers))
            if name == "input":
                found.append(inputs[numbers[0]])
            elif (constant := leaf(inner, name, numbers, dtype)) is not None:
                found.append(constant)
            else:
                found.append(PRIMITIVES[name](*(found[at] for at in uses), *numbers[len(uses) :]))
        results = [found[at] for _, at in step["outputs"]]
        return tuple(inner.where(is_first.equal(1), x, h) for x, h in zip(inputs[count:], results, strict=False))

    return _scanned(next_of, [0] * count, [*rows, is_first], axis)[output]


def argsort(x: Value, axis: int) -> Value:
    """The positions of the elements in ascending order."""
    return reductions.order(x, x.builder.shape(x, *_bounds(axis)), axis).cast(x.dtype)


def _bounds(axis: int) -> tuple[int, int | None]:
    """The slice of a shape that has the size of the axis only."""
    return axis, axis + 1 if axis < -1 else None


def _positions(index: Value, axis: int) -> tuple[Value, Value]:
    """Whether each number is a position in a row, and the position, or else 0."""
    b = index.builder
    n = b.node("Squeeze", b.shape(index, *_bounds(axis)), b.integers([0])).cast(index.dtype)
    is_one = (index >= 0) & (index < n) & index.equal(index.apply("Floor"))
    return is_one, b.where(is_one, index, 0).cast("int64")


def take(x: Value, index: Value, axis: int) -> Value:
    """The elements at positions; 0 where there is none."""
    x, index = _together(x, index)
    is_one, at = _positions(index, axis)
    return x.builder.where(is_one, x.builder.node("GatherElements", x, at, axis=axis), 0)


def put(x: Value, index: Value, axis: int) -> Value:
    """For each position, the sum of the elements whose `index` it is."""
    x, index = _together(x, index)
    b = x.builder
    is_one, at = _positions(index, axis)
    zeros = _full(0, x, b.shape(x))
    return b.node("ScatterElements", zeros, at, b.where(is_one, x, 0), axis=axis, reduction="add")


#: The functions by their names. They take rows, the axis, and the integer of those that have one.
ROW_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "argsort": argsort,
    "cummax": cummax,
    "cumsum": reductions.cumsum,
    "put": put,
    "recurrence": recurrence,
    "reverse": reverse,
    "reverse_cumsum": lambda x, axis: reductions.cumsum(x, axis, is_reversed=True),
    "scan": scan,
    "shift": shift,
    "take": take,
}
