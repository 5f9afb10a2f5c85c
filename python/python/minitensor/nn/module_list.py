"""A list of modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, overload

from .module import Module

__all__ = ["ModuleList"]


class ModuleList(Module):
    """A list of submodules.

    >>> import minitensor as mt
    >>> layers = mt.nn.ModuleList(mt.nn.Linear(n, 1) for n in (2, 3))
    >>> layers.append(mt.nn.Linear(4, 1))
    ModuleList(
      (0): Linear(in_features=2, out_features=1, bias=True)
      (1): Linear(in_features=3, out_features=1, bias=True)
      (2): Linear(in_features=4, out_features=1, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self.extend(modules)

    def _to_module(self, value: object) -> Module:
        """Returns `value` as a module, or raises."""
        if isinstance(value, Module):
            return value
        raise TypeError(f"{type(self).__name__} contains Modules, got {type(value).__name__}")

    def _items(self) -> list[tuple[str, Module]]:
        return list(self._attributes(("module",)))

    def _set_items(self, parts: Iterable[tuple[str, Module]]) -> None:
        """Replaces the content. Modules without an explicit name are named by their index."""
        for name, _ in self._items():
            delattr(self, name)
        for i, (name, module) in enumerate(parts):
            self.add_module(str(i) if name.isdigit() else name, module)

    def append(self, module: Module | Callable[..., Any]) -> Self:
        """Appends a module."""
        return self.extend([module])

    def extend(self, modules: Iterable[Module | Callable[..., Any]]) -> Self:
        """Appends several modules."""
        if isinstance(modules, Module) and not isinstance(modules, ModuleList):
            raise TypeError(f"{type(self).__name__} takes a list of Modules, got {type(modules).__name__}")
        self._set_items([*self._items(), *[("0", self._to_module(module)) for module in modules]])
        return self

    def insert(self, index: int, module: Module | Callable[..., Any]) -> Self:
        """Inserts a module before `index`."""
        parts = self._items()
        parts.insert(index, ("0", self._to_module(module)))
        self._set_items(parts)
        return self

    def __len__(self) -> int:
        return sum(1 for _ in self._attributes(("module",)))

    def __iter__(self) -> Iterator[Module]:
        return (module for _, module in self._items())

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Module | Self:
        parts = self._items()
        if isinstance(index, slice):
            part = type(self).__new__(type(self))
            part._set_items(parts[index])
            return part
        return parts[self._check_index(index)][1]

    def __setitem__(self, index: int, module: Module | Callable[..., Any]) -> None:
        setattr(self, self._items()[self._check_index(index)][0], self._to_module(module))

    def __delitem__(self, index: int | slice) -> None:
        parts = self._items()
        del parts[index if isinstance(index, slice) else self._check_index(index)]
        self._set_items(parts)

    def __iadd__(self, modules: Iterable[Module | Callable[..., Any]]) -> Self:
        return self.extend(modules)

    def _check_index(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(f"{type(self).__name__}: index {index} is out of range for {len(self)} modules")
        return index
