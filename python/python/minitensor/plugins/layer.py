"""Layers of plugins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..nn import Module

__all__ = ["CustomLayer"]


class CustomLayer(Module):
    """A module with a name, for plugins. It works like any other module in `nn.Sequential`, training and saving.

    Define `forward` in a subclass, or set a function that takes the layer and the arguments.

    >>> import minitensor as mt
    >>> layer = mt.plugins.CustomLayer("scale")
    >>> layer.factor = mt.ones(2, requires_grad=True)
    >>> layer.set_forward_fn(lambda layer, x: x * layer.factor)
    >>> mt.nn.Sequential(layer)
    Sequential(
      (0): CustomLayer(scale)
    )
    """

    _forward_fn: Callable[..., Any] | None = None

    def __init__(self, name: str = "") -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a layer must be a str, got {type(name).__name__}")
        self.name = name

    def set_forward_fn(self, function: Callable[..., Any]) -> None:
        """Sets the computation to `function(layer, *args)`."""
        if not callable(function):
            raise TypeError(f"set_forward_fn takes a function, got {type(function).__name__}")
        self._forward_fn = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the output of the layer."""
        if self._forward_fn is None:
            raise NotImplementedError(
                f"{self!r} has no forward method; define forward(self, x), or call set_forward_fn"
            )
        return self._forward_fn(self, *args, **kwargs)

    def extra_repr(self) -> str:
        return str(vars(self).get("name", ""))
