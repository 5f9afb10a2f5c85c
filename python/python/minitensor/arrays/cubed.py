"""Calls of ops on arrays of Cubed."""

from __future__ import annotations

from typing import Any

import cubed
import cubed.array_api as xp
import numpy as np
from cubed.core import unify_chunks

from .plan import check_classes, labelled, make_plan, split_message

__all__ = ["call"]


def call(name: str, arrays: dict[str, Any], attrs: dict[str, Any]) -> Any:
    """Applies an op to arrays of Cubed, block by block. The op must have one output, as Cubed requires."""
    check_classes(name, arrays, (cubed.Array,), "an array of Cubed")
    plan = make_plan(name, arrays, attrs, lambda _name, array, _core: array.shape)
    if len(plan.outputs) > 1:
        raise NotImplementedError(
            f"map_blocks: op '{name}' has {len(plan.outputs)} outputs, but functions on arrays of Cubed have one; "
            "use Dask"
        )
    spec = next(x.array.spec for x in plan.inputs if isinstance(x.array, cubed.Array))
    moved = []
    for given in plan.inputs:
        array = given.array
        if not isinstance(array, cubed.Array):
            array = cubed.from_array(np.asarray(array), chunks=-1, spec=spec)
        for axis in given.axes:
            if array.numblocks[axis] > 1:
                fix = f"rechunk the array first: {given.name}.rechunk({{{axis}: {array.shape[axis]}}})"
                raise ValueError(split_message(plan, given, axis, array.numblocks[axis], fix))
        moved.append(xp.permute_dims(array, _last(given.axes, array.ndim)) if given.axes else array)
    [output] = plan.outputs
    result = cubed.apply_gufunc(
        plan.function,
        plan.signature,
        *unify_chunks(*labelled(plan, moved))[1],
        output_dtypes=output.dtype,
        output_sizes=plan.new_sizes or None,
    )
    for axis in output.kept:
        result = xp.expand_dims(result, axis=axis)
    if output.axes:
        order = _last(output.axes, result.ndim)
        result = xp.permute_dims(result, tuple(order.index(a) for a in range(result.ndim)))
    return result


def _last(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Returns the order of axes that has these last."""
    return (*(a for a in range(rank) if a not in axes), *axes)
