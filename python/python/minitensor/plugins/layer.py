"""Layers that plugins bring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..nn import Module

__all__ = ["CustomLayer"]


class CustomLayer(Module):
    """A module of a plugin: it stands in `nn.Sequential`, optimizers train its parameters, and it is saved and loaded.

    A subclass defines `forward`, or a function is set, which gets the layer and what the layer is called with.

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
            raise TypeError(f"the name of a layer is a text, got {type(name).__name__}")
        self.name = name

    def set_forward_fn(self, function: Callable[..., Any]) -> None:
        """Computes `function(layer, *args)` when the layer is called."""
        if not callable(function):
            raise TypeError(f"set_forward_fn takes a function, got {type(function).__name__}")
        self._forward_fn = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the layer computes."""
        if self._forward_fn is None:
            raise NotImplementedError(f"{self!r} has no forward; define forward(self, x), or call set_forward_fn")
        return self._forward_fn(self, *args, **kwargs)

    def extra_repr(self) -> str:
        return str(vars(self).get("name", ""))
