"""Distinct elements: the steps of the ops, because runtimes order NaN differently in `Unique`."""

from __future__ import annotations

from collections.abc import Callable

from ..builder import Value
from ..call import Call
from ..reductions import order
from ..rule import rule
from .indexing import with_rows

__all__: list[str] = []


@rule("unique_values", "unique_counts", "unique_inverse", "unique_all")
def unique(call: Call) -> list[Value]:
    x, size, fill, b = call["x"], call.plain("size"), call.plain("fill_value"), call.builder
    row = b.node("Reshape", x.cast("uint8") if x.dtype == "bool" else x, b.integers([-1]))
    count = b.shape(row)
    place = order(row, count, 0, False)
    ordered = b.node("Gather", row, place)
    differs = ~_part(ordered, 1, None).equal(_part(ordered, None, -1))
    # The slice is for a row without elements.
    is_first = b.node("Slice", b.concat([b.constant([True], "bool"), differs]), b.integers([0]), count)
    starts = b.node("Reshape", b.node("NonZero", is_first, dtype="int64"), b.integers([-1]))
    bounds = b.concat([starts, count]) if size is None else with_rows(starts, size + 1, count)

    def firsts(x: Value, filling: Value) -> Value:
        return b.node("Gather", b.concat([x, filling]), _part(bounds, None, -1))

    def inverse() -> Value:
        runs = b.node("CumSum", is_first.cast("int64"), b.constant(0, "int64")) - 1
        return b.node("Reshape", b.node("ScatterElements", runs, place, runs), b.shape(x), allowzero=1)

    results: dict[str, Callable[[], Value]] = {
        "values": lambda: firsts(ordered, _part(ordered, None, 1) if fill is None else b.constant([fill], row.dtype)),
        "indices": lambda: firsts(place, _part(b.concat([place, b.integers([0])]), None, 1)),
        "inverse_indices": inverse,
        "counts": lambda: _part(bounds, 1, None) - _part(bounds, None, -1),
    }
    return [results[output.name]() for output in call.definition.outputs]


def _part(x: Value, start: int | None, stop: int | None) -> Value:
    """The elements `start:stop` of a row."""
    b = x.builder
    return b.node("Slice", x, b.integers([start or 0]), b.integers([2**63 - 1 if stop is None else stop]))
