"""Sequences, which are lists, and optionals, which are None if they are empty."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import ops
from ..error import OnnxError
from ..graph import Graph
from ..rule import rule
from ..values import Known, Scope, Value, described, tensor


def _sequence(value: Value) -> list[Value]:
    if not isinstance(value, list):
        raise OnnxError(f"expected a sequence, got {described(value)}")
    return value


def _position(position: Known, count: int, name: str) -> int:
    at = int(position.item())
    if not -count <= at < count:
        raise OnnxError(f"position {at} is out of range of the sequence of {count} for {name}")
    return at % count


@rule("SequenceConstruct")
def _sequence_construct(*items: Value) -> tuple[Value]:
    return (list(items),)


@rule("SequenceEmpty")
def _sequence_empty(*, dtype: int = 1) -> tuple[Value]:
    return ([],)


@rule("SequenceAt")
def _sequence_at(sequence: Value, position: Known) -> Value:
    items = _sequence(sequence)
    return items[_position(position, len(items), "SequenceAt")]


@rule("SequenceInsert")
def _sequence_insert(sequence: Value, item: Value, position: Known | None = None) -> tuple[Value]:
    items = list(_sequence(sequence))
    # An element is also inserted after the last one.
    at = len(items) if position is None else int(position.item())
    if not -len(items) <= at <= len(items):
        raise OnnxError(f"position {at} is out of range of the sequence of {len(items)}")
    items.insert(at, item)
    return (items,)


@rule("SequenceErase")
def _sequence_erase(sequence: Value, position: Known | None = None) -> tuple[Value]:
    items = list(_sequence(sequence))
    del items[-1 if position is None else _position(position, len(items), "SequenceErase")]
    return (items,)


@rule("SequenceLength")
def _sequence_length(sequence: Value) -> Known:
    return np.array(len(_sequence(sequence)), dtype="int64")


@rule("ConcatFromSequence")
def _concat_from_sequence(sequence: Value, *, axis: int, new_axis: int = 0) -> Value:
    items = [tensor(item) for item in _sequence(sequence)]
    if not items:
        raise OnnxError("the sequence is empty")
    return ops.stack(items, axis) if new_axis else ops.concat(items, axis)


@rule("SequenceMap")
def _sequence_map(sequence: Value, *additional: Value, scope: Scope, body: Graph) -> tuple[Value, ...]:
    items = _sequence(sequence)
    rows = []
    for k, item in enumerate(items):
        others = [value[k] if isinstance(value, list) else value for value in additional]
        rows.append(body.run(scope, [item, *others]))
    return tuple([row[k] for row in rows] for k in range(len(body.outputs)))


@rule("Optional")
def _optional(value: Value = None, *, type: Any = None) -> tuple[Value]:  # noqa: A002 - in ONNX
    return (value,)


@rule("OptionalGetElement")
def _optional_get_element(value: Value) -> tuple[Value]:
    if value is None:
        raise OnnxError("the optional is empty")
    return (value,)


@rule("OptionalHasElement")
def _optional_has_element(value: Value = None) -> Known:
    return np.array(value is not None)
