"""Finds the bridge to the framework of an array."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

#: The bridge for the classes of each package or module.
_MODULES = {
    "torch": "minitensor.torch",
    "jax": "minitensor.jax",
    "jaxlib": "minitensor.jax",
    "dask": "minitensor.arrays.chunks",
    "cubed": "minitensor.arrays.chunks",
    "xarray": "minitensor.arrays.chunks",
    "minitensor.elements": "minitensor.elements",
}


@functools.lru_cache(256)
def find(cls: type) -> Callable[[str, dict[str, Any]], Any] | None:
    """Returns the function that calls an op, given its name and its arguments, on objects of a class."""
    for base in cls.__mro__:
        names = (base.__module__, base.__module__.partition(".")[0])
        module = next((_MODULES[name] for name in names if name in _MODULES), None)
        if module is not None:
            call: Callable[[str, dict[str, Any]], Any] = importlib.import_module(module).call
            return call
    return None
