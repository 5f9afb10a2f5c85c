"""`jax.vmap` of calls.

The shape clause tells which ops take batches. For other ops, the examples are computed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .._definitions import Role, Shapes
from .._minitensor import _encode_call
from .call import Call

#: Computes a call on arrays.
Compute = Callable[[Call, Sequence[Any]], list[Any]]


def batch(
    call: Call,
    roles: Sequence[Role],
    args: Sequence[Any],
    dims: Sequence[int | None],
    wanted: set[Role],
    compute: Compute,
) -> tuple[list[Any], list[int]]:
    """Computes a call for each example of its batched arguments. `wanted` are further tensors that have derivatives."""
    examples = [x if dim is None else jnp.moveaxis(x, dim, 0) for x, dim in zip(args, dims, strict=True)]
    batched = [dim is not None for dim in dims]
    size = next(x.shape[0] for x, b in zip(examples, batched, strict=True) if b)
    together = _together(call, roles, examples, batched, size, wanted | call.differentiated())
    if together is None:
        results = _one_by_one(call, examples, batched, compute)
    else:
        call, arrays = together
        results = compute(call, arrays)
        # Inputs got dimensions of size 1 before their own. Their gradients do not keep them.
        own = {role: x.shape[b:] for role, x, b in zip(roles, examples, batched, strict=True) if not role.is_output}
        for k, role in enumerate(call.result_roles(len(results))):
            if role in own:
                results[k] = results[k].reshape(size, *own[role])
    return results, [0] * len(results)


def _one_by_one(call: Call, examples: Sequence[Any], batched: Sequence[bool], compute: Compute) -> list[Any]:
    def one(parts: Sequence[Any]) -> list[Any]:
        given = iter(parts)
        return compute(call, [next(given) if b else x for x, b in zip(examples, batched, strict=True)])

    return list(jax.lax.map(one, [x for x, b in zip(examples, batched, strict=True) if b]))


def _together(
    call: Call,
    roles: Sequence[Role],
    examples: Sequence[Any],
    batched: Sequence[bool],
    size: int,
    differentiated: set[Role],
) -> tuple[Call, list[Any]] | None:
    """The call and its arrays for all examples at once; None if there is no such call."""
    shapes = call.definition.shapes
    if shapes is None or not shapes.is_batched:
        return None
    ranks = [x.ndim - b for x, b in zip(examples, batched, strict=True)]
    if shapes.axis is not None:
        moved = _with_negative_axes(call, shapes, roles, ranks)
        if moved is None:
            return None
        call = moved
    elif any(rank < len(shapes.of(role).core) for role, rank in zip(roles, ranks, strict=True) if not role.is_output):
        # An example with too few dimensions must not use the batch as one of them.
        return None
    batch_ranks = [rank - len(shapes.of(role).core) for role, rank in zip(roles, ranks, strict=True)]
    most = max((b for role, b in zip(roles, batch_ranks, strict=True) if not role.is_output), default=0)
    arrays = []
    for role, x, is_batched, batch_rank in zip(roles, examples, batched, batch_ranks, strict=True):
        # Each gradient is one of an example, and cotangents have the shapes of the results.
        is_shared = not is_batched and not role.is_output and role not in differentiated
        if is_shared and (shapes.axis is None or not shapes.of(role).has_batch):
            arrays.append(x)
            continue
        if not shapes.of(role).has_batch:
            return None
        own = x.shape[1:] if is_batched else x.shape
        # With an attribute for the axes, the inputs have equal ranks.
        missing = 0 if shapes.axis is not None else most - batch_rank
        x = x.reshape(size if is_batched else 1, *[1] * missing, *own)
        arrays.append(x if is_batched else jnp.broadcast_to(x, (size, *x.shape[1:])))
    return call, arrays


def _with_negative_axes(call: Call, shapes: Shapes, roles: Sequence[Role], ranks: Sequence[int]) -> Call | None:
    """The call with its axes counted from the end, so that a new first dimension does not change them."""
    axis = shapes.axis
    assert axis is not None
    # The axes are those of the inputs that have the core dimension.
    found = {rank for role, rank in zip(roles, ranks, strict=True) if not role.is_output and shapes.of(role).core}
    if len(found) != 1:
        return None
    rank = found.pop()
    attributes = call.attributes
    # An example without such an axis must not use the batch as one.
    if rank == 0 or not axis.is_valid(attributes, rank):
        return None
    return call._replace(text=_encode_call(call.definition.name, axis.from_the_end(attributes, rank)))
