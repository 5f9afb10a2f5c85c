"""Calls of ops on `xarray.DataArray`s."""

from __future__ import annotations

from typing import Any

import xarray

from .._definitions import Role, define
from .plan import Input, Plan, check_classes, make_plan, split_message

__all__ = ["call"]


def call(name: str, arrays: dict[str, Any], attrs: dict[str, Any]) -> Any:
    """Applies an op to labelled arrays, whose dimensions are matched by name."""
    for key, x in arrays.items():
        if isinstance(x, xarray.Dataset):
            raise TypeError(
                f"map_blocks: op '{name}': input '{key}' is a Dataset; apply the op to its variables: "
                "dataset.map(lambda x: mt.map_blocks(op, x))"
            )
    chunked = tuple(type(x) for x in arrays.values() if hasattr(x, "chunks"))
    check_classes(name, arrays, (xarray.DataArray, xarray.Variable, *chunked), "a DataArray")
    labelled = {key: x for key, x in arrays.items() if isinstance(x, xarray.DataArray | xarray.Variable)}
    shapes = define(name).shapes
    axis = None if shapes is None else shapes.axis
    if axis is not None and axis.attribute in attrs:
        first = next(iter(labelled.values()))
        attrs = attrs | {axis.attribute: _axis(name, attrs[axis.attribute], first)}
    loops = list(dict.fromkeys(dim for x in labelled.values() for dim in x.dims))
    sizes = {dim: n for x in labelled.values() for dim, n in x.sizes.items()}

    def aligned(key: str, x: Any, core: int) -> tuple[int, ...]:
        """Returns a shape that broadcasts by position. An input with an `axis` clause has all dimensions."""
        if key not in labelled or axis is not None or x.ndim == core:
            return tuple(x.shape)
        own = x.dims[: x.ndim - core]
        cores = {dim for y in labelled.values() for dim in y.dims[y.ndim - core :]} if core else set()
        return (*(sizes[d] if d in own else 1 for d in loops if d not in cores), *x.shape[x.ndim - core :])

    plan = make_plan(name, arrays, attrs, aligned)
    dims = _dimensions(plan)
    _check_chunks(plan)
    changed = {dims[n] for x in plan.outputs for n in x.core if n in plan.new_sizes}
    results = xarray.apply_ufunc(
        plan.function,
        *(x.array for x in plan.inputs),
        input_core_dims=[[dims[n] for n in x.core] for x in plan.inputs],
        output_core_dims=[[dims[n] for n in x.core] for x in plan.outputs],
        exclude_dims=changed & {dims[n] for x in plan.inputs for n in x.core},
        keep_attrs=True,
        dask="parallelized",
        output_dtypes=[x.dtype for x in plan.outputs],
        dask_gufunc_kwargs={"output_sizes": {dims[n]: size for n, size in plan.new_sizes.items()}},
    )
    made = results if len(plan.outputs) > 1 else (results,)
    made = tuple(_ordered(plan, output, result, loops) for output, result in zip(plan.outputs, made, strict=True))
    return made if len(made) > 1 else made[0]


def _axis(name: str, axis: Any, array: Any) -> Any:
    """Returns axes as numbers. They may be names of dimensions."""

    def number(a: Any) -> Any:
        if not isinstance(a, str):
            return a
        if a not in array.dims:
            raise ValueError(f"map_blocks: op '{name}': axis '{a}' is not a dimension; the dimensions are {array.dims}")
        return array.dims.index(a)

    return [number(a) for a in axis] if isinstance(axis, list | tuple) else number(axis)


def _dimensions(plan: Plan) -> dict[str, Any]:
    """Returns the dimension for each core dimension of the signature. A new size replaces the dimension at the same
    place."""
    dims: dict[str, Any] = {}
    for given in plan.inputs:
        for core, axis in zip(given.core, given.axes, strict=True):
            if not hasattr(given.array, "dims"):
                continue
            found = given.array.dims[axis]
            if dims.setdefault(core, found) != found:
                raise ValueError(
                    f"map_blocks: op '{plan.function.__name__}': dimension '{found}' of input '{given.name}' must "
                    "have the name "
                    f"'{dims[core]}', because it is the same core dimension; use .rename()"
                )
    first: list[Any] = [dims.get(core) for core in plan.inputs[0].core]
    shapes = define(plan.function.__name__).shapes
    for position, output in enumerate(plan.outputs):
        written = () if shapes is None else shapes.of(Role(True, position)).core
        for k, core in enumerate(output.core):
            if core not in dims:
                is_replaced = len(output.core) == len(first) and first[k] is not None
                # A size that is an attribute has its name.
                size: Any = written[k]
                is_attr = isinstance(size, tuple) and size[0] == "attr"
                dims[core] = first[k] if is_replaced else size[1] if is_attr else core
    for given in plan.inputs:
        for core in given.core:
            dims.setdefault(core, core)
    return dims


def _check_chunks(plan: Plan) -> None:
    for given in plan.inputs:
        chunks: Any = getattr(given.array, "chunks", None) or {}
        for axis in given.axes if chunks else ():
            if len(chunks[axis]) > 1:
                fix = f"rechunk the array first: {given.name}.chunk({{'{given.array.dims[axis]}': -1}})"
                raise ValueError(split_message(plan, given, axis, len(chunks[axis]), fix))


def _ordered(plan: Plan, output: Any, result: Any, loops: list[Any]) -> Any:
    """Returns a result with the dimensions in the order of the inputs."""
    if output.kept:
        first: Input = next(x for x in plan.inputs if x.axes)
        result = result.expand_dims([first.array.dims[a] for a in output.kept])
    order = [dim for dim in loops if dim in result.dims]
    return result.transpose(*order, *(dim for dim in result.dims if dim not in order))
