"""Calls of ops on arrays that are divided into chunks."""

from __future__ import annotations

import importlib
from typing import Any

from .._definitions import define
from .names import op_name

__all__ = ["call", "map_blocks"]

#: The modules that call ops on the arrays of each package. An array of an earlier package may contain arrays of a
#: later one.
MODULES = {"xarray": "xarray", "dask": "dask", "cubed": "cubed"}


def map_blocks(op: Any, *arrays: Any, **attrs: Any) -> Any:
    """Applies an op to arrays that are divided into chunks, which may be larger than memory.

    `op` is an op or its name. `arrays` are its inputs: arrays of Dask or Cubed, `xarray.DataArray`s, and NumPy arrays
    and numbers
    among them. `attrs` are its attributes; an input can also be passed by its name. The result is an array of the same
    library that is not computed yet, or a tuple of them if the op has several outputs. Arrays of other libraries are
    passed to
    the op itself.

    Each block is computed by one call of the op. Core dimensions, such as the normalized axis of `layer_norm`, must not
    be divided into chunks; the others may be. Workers find the op by its name and its plugin, which they must have.
    For `DataArray`s, `axis` may be the name of a dimension.

    Raises TypeError for an op whose shape rule does not say which dimensions are independent, ValueError for a core
    dimension that
    is divided into chunks, and the errors of the op for arguments that it does not accept.

    >>> import minitensor as mt
    >>> import numpy as np
    >>> mt.map_blocks("softmax", np.zeros((2, 4)), axis=1)
    array([[0.25, 0.25, 0.25, 0.25],
           [0.25, 0.25, 0.25, 0.25]])
    """
    name = op_name(op, "map_blocks")
    definition = define(name)
    inputs = [i.name for i in definition.inputs]
    known = [*inputs, *(a.name for a in definition.attrs)]
    if len(arrays) > len(inputs):
        raise TypeError(f"map_blocks: op '{definition.name}' takes the inputs {inputs}, got {len(arrays)} arrays")
    for key in attrs:
        if key not in known:
            raise TypeError(f"map_blocks: op '{definition.name}' has no argument '{key}'; it has {known}")
    given = dict(zip(inputs, arrays, strict=False))
    for key in [key for key in attrs if key in inputs]:
        if key in given:
            raise TypeError(f"map_blocks: op '{definition.name}': input '{key}' is passed twice")
        given[key] = attrs.pop(key)
    return call(definition.name, given | attrs)


def call(name: str, arguments: dict[str, Any]) -> Any:
    """Calls an op on arguments by name, some of which may be chunked arrays."""
    items = [item for x in arguments.values() for item in (x if isinstance(x, list | tuple) else [x])]
    found = {_package(type(item)) for item in items}
    for package, module in MODULES.items():
        if package in found:
            inputs = {i.name for i in define(name).inputs}
            attrs = {key: x for key, x in arguments.items() if key not in inputs}
            arrays = {key: x for key, x in arguments.items() if key in inputs}
            return importlib.import_module(f".{module}", __package__).call(name, arrays, attrs)
    from .. import ops

    function: Any = ops
    for part in name.split("::"):
        function = getattr(function, part)
    return function(**arguments)


def _package(cls: type) -> str | None:
    """Returns the package of a class of chunked arrays."""
    packages = (base.__module__.partition(".")[0] for base in cls.__mro__)
    return next((package for package in packages if package in MODULES), None)
