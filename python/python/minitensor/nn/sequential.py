"""A sequence of modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .function import Function
from .module import Module
from .module_list import ModuleList

__all__ = ["Sequential"]


class Sequential(ModuleList):
    """Applies modules in sequence. Functions such as `mt.ops.relu` are accepted too.

    >>> import minitensor as mt
    >>> model = mt.nn.Sequential(mt.nn.Linear(2, 3), mt.ops.relu)
    >>> model
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): Function(relu)
    )
    >>> model(mt.zeros((1, 2))).shape
    (1, 3)
    """

    def __init__(self, *modules: Module | Callable[..., Any] | Mapping[str, Module | Callable[..., Any]]) -> None:
        named = modules[0] if len(modules) == 1 and isinstance(modules[0], Mapping) else dict(enumerate(modules))
        for name, module in named.items():
            self.add_module(str(name), self._to_module(module))

    def _to_module(self, value: object) -> Module:
        if isinstance(value, Module):
            return value
        if isinstance(value, type) or not callable(value):
            got = f"the class {value.__name__}; instantiate it" if isinstance(value, type) else type(value).__name__
            raise TypeError(f"{type(self).__name__} contains Modules and functions, got {got}")
        return Function(value)

    def forward(self, x: Any) -> Any:
        for _, module in self._attributes(("module",)):
            x = module(x)
        return x
