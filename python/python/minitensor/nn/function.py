"""A function as a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .module import Module

__all__ = ["Function"]


class Function(Module):
    """A module that calls a function without parameters, such as an op. `Sequential` wraps functions automatically.

    >>> import minitensor as mt
    >>> mt.nn.Function(mt.ops.relu)
    Function(relu)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(f"Function takes a callable, got {type(function).__name__}")
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def extra_repr(self) -> str:
        return str(getattr(self.function, "__name__", self.function))
