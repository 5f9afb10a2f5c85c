"""Functions that a module calls before or after its `forward`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["HookHandle", "Hooks"]

Hooks = dict["HookHandle", Callable[..., Any]]


class HookHandle:
    """Takes a hook away again: by `remove()`, or at the end of a `with` block."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    @classmethod
    def of(cls, hooks: Hooks, hook: Callable[..., Any]) -> HookHandle:
        """Adds a hook to those of a module."""
        if not callable(hook):
            raise TypeError(f"a hook is a function, got {type(hook).__name__}")
        handle = cls(hooks)
        hooks[handle] = hook
        return handle

    def remove(self) -> None:
        """The hook is not called any more; a second time changes nothing."""
        self._hooks.pop(self, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()
