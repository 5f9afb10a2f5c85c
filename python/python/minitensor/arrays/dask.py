"""Calls of ops on Dask arrays."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np

from .plan import check_classes, labelled, make_plan, split_message

__all__ = ["call"]


def call(name: str, arrays: dict[str, Any], attrs: dict[str, Any]) -> Any:
    """Applies an op to Dask arrays, block by block."""
    check_classes(name, arrays, (da.Array,), "a Dask array")
    plan = make_plan(name, arrays, attrs, lambda _name, array, _core: array.shape)
    moved = []
    for given in plan.inputs:
        array = given.array
        if not isinstance(array, da.Array):
            array = da.from_array(np.asarray(array), chunks=-1)
        for axis in given.axes:
            if array.numblocks[axis] > 1:
                fix = f"rechunk the array first: {given.name}.rechunk({{{axis}: -1}})"
                raise ValueError(split_message(plan, given, axis, array.numblocks[axis], fix))
        moved.append(da.moveaxis(array, given.axes, range(-len(given.axes), 0)) if given.axes else array)
    dtypes = [output.dtype for output in plan.outputs]
    results = da.apply_gufunc(
        plan.function,
        plan.signature,
        *da.core.unify_chunks(*labelled(plan, moved))[1],
        output_dtypes=dtypes if len(dtypes) > 1 else dtypes[0],
        output_sizes=plan.new_sizes,
    )
    made = []
    for output, result in zip(plan.outputs, results if len(dtypes) > 1 else [results], strict=True):
        if output.kept:
            result = da.expand_dims(result, output.kept)
        made.append(da.moveaxis(result, range(-len(output.axes), 0), output.axes) if output.axes else result)
    return tuple(made) if len(made) > 1 else made[0]
