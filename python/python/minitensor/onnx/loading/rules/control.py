"""Control flow: If, Loop, Scan."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .... import _minitensor as mt
from .... import ops, tracing
from ..error import OnnxError
from ..graph import Graph
from ..rule import rule
from ..values import Known, Scope, Tensor, Value, tensor


@rule("If")
def _if(cond: Value, *, scope: Scope, then_branch: Graph, else_branch: Graph) -> tuple[Value, ...]:
    if isinstance(cond, Tensor) and mt._is_recording():
        # Both branches are recorded, and each run chooses one. The tensors that they read are operands.
        names = [n for n in then_branch.captured | else_branch.captured if isinstance(scope[n], Tensor)]

        def branch(graph: Graph) -> Callable[..., tuple[Tensor, ...]]:
            return lambda *tensors: _tensors(graph, {**scope, **dict(zip(names, tensors, strict=True))})

        operands = [scope[name] for name in names]
        found: tuple[Value, ...] = tracing.cond(
            ops.reshape(cond, []), branch(then_branch), branch(else_branch), *operands
        )
        return found
    return tuple((then_branch if _is_true(cond) else else_branch).run(scope, []))


def _tensors(graph: Graph, scope: Scope) -> tuple[Tensor, ...]:
    results = graph.run(scope, [])
    if any(value is None or isinstance(value, list) for value in results):
        raise OnnxError("under mt.jit, branches return tensors; call the model without it for sequences and optionals")
    return tuple(map(tensor, results))


def _is_true(value: Value) -> bool:
    """Returns a truth value. That of a tensor is read."""
    if value.size != 1:
        raise OnnxError(f"a condition has {value.size} elements; expected 1")
    return bool(value.item())


def _stacked(found: list[Value], graph: Graph, position: int, axis: int = 0) -> Tensor:
    """Returns the results of all steps as a tensor."""
    if found:
        return ops.stack([tensor(value) for value in found], axis)
    dtype, shape = graph.types[position]
    sizes = [size for size in shape or () if isinstance(size, int)]
    if dtype is None or shape is None or len(sizes) != len(shape):
        raise OnnxError(f"no step runs, and the output '{graph.outputs[position]}' of the body does not say its shape")
    sizes.insert(axis, 0)
    return mt.zeros(sizes, dtype=dtype)


@rule("Loop")
def _loop(
    count: Known | None = None, cond: Value = None, *carried: Value, scope: Scope, body: Graph
) -> tuple[Value, ...]:
    limit = None if count is None else int(count.item())
    state = list(carried)
    outputs: list[list[Value]] = [[] for _ in body.outputs[1 + len(state) :]]
    step = 0
    while (limit is None or step < limit) and (cond is None or _is_true(cond)):
        given = np.array(True) if cond is None else cond
        results = body.run(scope, [np.array(step, dtype="int64"), given, *state])
        cond, state = results[0], results[1 : 1 + len(state)]
        for found, value in zip(outputs, results[1 + len(state) :], strict=True):
            found.append(value)
        step += 1
    first = 1 + len(state)
    return (*state, *(_stacked(found, body, first + k) for k, found in enumerate(outputs)))


def _part(x: Tensor, axis: int, at: int) -> Tensor:
    axis %= x.ndim
    return ops.reshape(ops.slice(x, axis, at, at + 1), [*x.shape[:axis], *x.shape[axis + 1 :]])


@rule("Scan", since=9)
def _scan(
    *values: Value,
    scope: Scope,
    body: Graph,
    num_scan_inputs: int,
    scan_input_axes: list[int] | None = None,
    scan_input_directions: list[int] | None = None,
    scan_output_axes: list[int] | None = None,
    scan_output_directions: list[int] | None = None,
) -> tuple[Value, ...]:
    first = len(values) - num_scan_inputs
    state, rows = list(values[:first]), [tensor(value) for value in values[first:]]
    axes = scan_input_axes or [0] * len(rows)
    backward = scan_input_directions or [0] * len(rows)
    lengths = {x.shape[axis] for x, axis in zip(rows, axes, strict=True)}
    if len(lengths) != 1:
        raise OnnxError(f"the inputs have different lengths: {sorted(lengths)}")
    (length,) = lengths
    outputs: list[list[Value]] = [[] for _ in body.outputs[first:]]
    for step in range(length):
        parts = [
            _part(x, axis, length - 1 - step if is_backward else step)
            for x, axis, is_backward in zip(rows, axes, backward, strict=True)
        ]
        results = body.run(scope, [*state, *parts])
        state = results[:first]
        for found, value in zip(outputs, results[first:], strict=True):
            found.append(value)
    for found, is_backward in zip(outputs, scan_output_directions or [0] * len(outputs), strict=True):
        if is_backward:
            found.reverse()
    places = scan_output_axes or [0] * len(outputs)
    stacked = [
        _stacked(found, body, first + k, place) for k, (found, place) in enumerate(zip(outputs, places, strict=True))
    ]
    return (*state, *stacked)


@rule("Scan", since=8)
def _scan_8(
    sequence_lens: Known | None = None,
    *values: Value,
    scope: Scope,
    body: Graph,
    num_scan_inputs: int,
    directions: list[int] | None = None,
) -> tuple[Value, ...]:
    # The first axis of all values is a batch, and the second one that of the steps.
    first = len(values) - num_scan_inputs
    tensors = [tensor(value) for value in values]
    length = tensors[first].shape[1]
    rows: list[tuple[Value, ...]] = []
    for k in range(tensors[0].shape[0]):
        if sequence_lens is not None and int(sequence_lens[k]) != length:
            raise OnnxError("sequences of different lengths are not supported in opset 8; convert the model to opset 9")
        parts = [_part(x, 0, k) for x in tensors]
        rows.append(
            _scan(*parts, scope=scope, body=body, num_scan_inputs=num_scan_inputs, scan_input_directions=directions)
        )
    return tuple(ops.stack([tensor(value) for value in column], 0) for column in zip(*rows, strict=True))
