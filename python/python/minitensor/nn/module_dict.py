"""A dictionary of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from .module import Module

__all__ = ["ModuleDict"]


class ModuleDict(Module):
    """A dictionary of submodules.

    >>> import minitensor as mt
    >>> heads = mt.nn.ModuleDict({"left": mt.nn.Linear(2, 1)})
    >>> heads["right"] = mt.nn.Linear(2, 3)
    >>> list(heads)
    ['left', 'right']
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()) -> None:
        self.update(modules)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Adds modules, and replaces those with the same names."""
        for name, module in dict(modules).items():
            self[name] = module

    def __getitem__(self, name: str) -> Module:
        found: Module = self._items()[name]
        return found

    def __setitem__(self, name: str, module: Module) -> None:
        if not isinstance(module, Module):
            raise TypeError(f"ModuleDict contains Modules, got {type(module).__name__} for '{name}'")
        self.add_module(name, module)

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        delattr(self, name)

    def _items(self) -> dict[str, Module]:
        return dict(self._attributes(("module",)))

    def __len__(self) -> int:
        return len(self._items())

    def __iter__(self) -> Iterator[str]:
        return iter(self._items())

    def __contains__(self, name: object) -> bool:
        return name in self._items()

    def keys(self) -> Iterable[str]:
        """Returns the names."""
        return self._items().keys()

    def values(self) -> Iterable[Module]:
        """Returns the modules."""
        return self._items().values()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Returns pairs of names and modules."""
        return self._items().items()

    def pop(self, name: str) -> Module:
        """Removes a module and returns it."""
        module = self[name]
        del self[name]
        return module
