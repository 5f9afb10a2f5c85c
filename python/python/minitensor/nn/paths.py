"""Tensors of modules by paths such as `block.weight`."""

from __future__ import annotations

from typing import Any

from .._minitensor import Tensor
from .module import Module

__all__ = ["add_tensor", "get_tensor"]


def add_tensor(module: Module, path: str, tensor: Tensor, kind: str) -> None:
    """Adds a parameter or a buffer, and the modules that its path names. Only a `buffer` is part of the state."""
    *parts, last = path.split(".")
    for part in parts:
        child = vars(module).get(part)
        if not isinstance(child, Module):
            child = Module()
            module.add_module(part, child)
        module = child
    if kind == "parameter":
        module.register_parameter(last, tensor)
    else:
        module.register_buffer(last, tensor, persistent=kind == "buffer")


def get_tensor(module: Module, path: str) -> Tensor:
    """Returns the tensor that a graph reads. Raises ValueError if it was removed."""
    found: Any = module
    for part in path.split("."):
        found = vars(found).get(part)
        if found is None:
            break
    if not isinstance(found, Tensor):
        raise ValueError(f"the loaded model has no tensor '{path}', which its graph reads; set it again")
    return found
