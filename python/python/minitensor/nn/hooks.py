"""Functions that a module calls before or after its `forward`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["HookHandle", "Hooks"]

Hooks = dict["HookHandle", Callable[..., Any]]


class HookHandle:
    """Removes a hook, with `remove()` or at the end of a `with` block."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    @classmethod
    def of(cls, hooks: Hooks, hook: Callable[..., Any]) -> HookHandle:
        """Adds a hook and returns its handle."""
        if not callable(hook):
            raise TypeError(f"a hook must be callable, got {type(hook).__name__}")
        handle = cls(hooks)
        hooks[handle] = hook
        return handle

    def remove(self) -> None:
        """Removes the hook. Calling it again has no effect."""
        self._hooks.pop(self, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()
