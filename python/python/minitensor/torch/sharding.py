"""Sharding rules of ops for DTensor, made from their rules for shapes.

Batch dimensions are independent: an op runs locally on shards of them. The gradient of an input that lacks a sharded
dimension, such as a weight, is a partial sum. Core dimensions are replicated, except by an op whose results for parts
of a row add up: its result is a partial sum. An op that is linear in an input runs locally on partial sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._definitions import Role
from .definition import Definition

if TYPE_CHECKING:
    from .op import Op

#: For each tensor of a call, its sharded dimension; None if it is replicated.
Places = list[int | None]


def register(op: Op) -> None:
    """Registers the rules of an op and of its gradients."""
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor._op_schema import RuntimeSchemaInfo

    count, is_variadic = len(op.definition.inputs), op.definition.is_variadic
    propagator = DTensor._op_dispatcher.sharding_propagator
    # The arguments from this position on are attributes, which determine the result too.
    info = RuntimeSchemaInfo(static_argnum=count, needs_pytree=is_variadic)
    propagator.register_op_strategy(op.op, lambda schema: strategy(op, schema), info)
    if op.definition.is_differentiable:
        info = RuntimeSchemaInfo(static_argnum=2, needs_pytree=True)
        propagator.register_op_strategy(op.gradient_op, lambda schema: gradient_strategy(op, schema), info)


def strategy(op: Op, schema: Any) -> Any:
    """The admitted placements of the results and inputs of an op."""
    from torch.distributed.tensor import Partial, Replicate, Shard

    args = op.definition.all_arguments(tuple(schema.args_schema))
    tensors = op.definition.flat(tuple(children(arg) for arg in args))
    shapes = [None if t is None else tuple(t.shape) for t in tensors]
    count = len(op.definition.outputs)
    placements: list[tuple[Places, Places]] = [([None] * count, [None] * len(given(shapes)))]
    attrs = op.definition.attributes(args)
    for results, inputs in batch_places(op, shapes, attrs):
        placements.append((results, [place for place, shape in zip(inputs, shapes, strict=True) if shape is not None]))
    every = [(shards(r), shards(i)) for r, i in placements]
    every += [([Partial()], [Shard(axis)]) for axis in added_axes(op, shapes, attrs)]
    last = len(op.definition.inputs) - 1
    for group in op.definition.linear:
        is_linear = [min(k, last) in group for k, shape in enumerate(shapes) if shape is not None]
        every.append(([Partial()] * count, [Partial() if linear else Replicate() for linear in is_linear]))
    return expanded(schema, every, count)


def gradient_strategy(op: Op, schema: Any) -> Any:
    """The admitted placements of the results and tensors of a gradient."""
    from torch.distributed.tensor import Partial, Shard

    from .selection import Selection

    tensors, known, wrt, *attributes = schema.args_schema
    selection = Selection.decode(wrt)
    # Each known result has the places of the result.
    is_read = op.definition.results_read if children(known) else []
    all_tensors = selection.complete(children(tensors))
    shapes = [None if t is None else tuple(t.shape) for t in all_tensors]
    count = sum(selection.orders[-1])
    nowhere = [None] * (len(given(shapes)) + sum(is_read))
    placements: list[tuple[list[Any], list[Any]]] = [(shards([None] * count), shards(nowhere))]
    if len(selection.orders) == 1:
        first = len(shapes) - len(selection.orders[0])
        attrs = op.definition.attributes((*[None] * len(op.definition.inputs), *attributes))
        for results, inputs in batch_places(op, shapes[first:], attrs):
            wanted = [place for place, is_wanted in zip(inputs, selection.orders[0], strict=True) if is_wanted]
            # A tensor without the sharded dimension contributes to all shards.
            gradients = [Partial() if place is None else Shard(place) for place in wanted]
            places = [p for p, shape in zip([*results, *inputs], shapes, strict=True) if shape is not None]
            places += [p for p, is_known in zip(results, is_read, strict=False) if is_known]
            placements.append((gradients, shards(places)))
        # Each part of a row has the gradient of the sum.
        for axis in added_axes(op, shapes[first:], attrs) if not any(is_read) else []:
            placements.append(([Shard(axis)] * count, [*shards([None] * len(given(shapes[:first]))), Shard(axis)]))
    found = expanded(schema, placements, count)
    if count == 1:
        # The gradient op returns a list.
        for one in found.strategies:
            one.output_specs = (one.output_specs,)
    return found


def batch_places(op: Op, shapes: list[Any], attrs: dict[str, Any]) -> list[tuple[Places, Places]]:
    """For each independent dimension of a call, its places in the results and in the inputs."""
    definition, clause = op.definition, op.definition.shapes
    count = len(definition.outputs)
    if clause is None or not clause.is_batched:
        return []
    if clause.axis is not None:
        return places_beside_axes(definition, shapes[0], attrs) if len(shapes) == 1 else []
    if definition.is_variadic and not definition.is_elementwise:
        return []
    rules = [clause.of(Role(False, k)) for k in range(len(shapes))]
    batches = [
        len(shape) - len(dims) if has_batch and shape is not None else 0
        for (has_batch, dims), shape in zip(rules, shapes, strict=True)
    ]
    rank = max(batches, default=0)

    def place_of(batch: int, shape: Any, place: int) -> int | None:
        own = place - (rank - batch)
        return own if shape is not None and own >= 0 and shape[own] != 1 else None

    return [
        ([place] * count, [place_of(batch, shape, place) for batch, shape in zip(batches, shapes, strict=True)])
        for place in range(rank)
    ]


def places_beside_axes(definition: Definition, shape: Any, attrs: dict[str, Any]) -> list[tuple[Places, Places]]:
    """The independent dimensions of an op of one input, whose caller chose the axes of the core."""
    assert definition.shapes is not None
    axis, attrs = definition.shapes.axis, definition.complete(attrs)
    assert axis is not None
    axes, keeps = axis.chosen(attrs, len(shape)), axis.keeps(attrs)
    found: list[tuple[Places, Places]] = []
    for place in set(range(len(shape))) - set(axes):
        removed = place - sum(axis < place for axis in axes)
        found.append(([place if dims.core or keeps else removed for dims in definition.shapes.outputs], [place]))
    return found


def added_axes(op: Op, shapes: list[Any], attrs: dict[str, Any]) -> Sequence[int]:
    """The core dimensions of an op of one input, if the results for parts of a row add up to that for the row."""
    clause = op.definition.shapes
    if op.definition.combine != "add" or clause is None or clause.axis is None or shapes[0] is None:
        return []
    return clause.axis.chosen(op.definition.complete(attrs), len(shapes[0]))


def children(arg: Any) -> Any:
    """The tensors of an argument: those of a list as a list."""
    return list(arg.children) if hasattr(arg, "children") else arg


def given(shapes: list[Any]) -> list[Any]:
    """The shapes of the tensors that are given."""
    return [shape for shape in shapes if shape is not None]


def shards(places: Sequence[int | None]) -> list[Any]:
    """The placements of DTensor."""
    from torch.distributed.tensor import Replicate, Shard

    return [Replicate() if place is None else Shard(place) for place in places]


def expanded(schema: Any, placements: list[tuple[list[Any], list[Any]]], count: int) -> Any:
    """The placements for each dimension of the mesh, in all combinations."""
    from torch.distributed.tensor._ops.utils import expand_to_full_mesh_op_strategy

    lists = [results + inputs for results, inputs in placements]
    return expand_to_full_mesh_op_strategy(schema.get_mesh_from_args(), schema, lists, input_index=count)
