"""A plugin written in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .info import PluginInfo

if TYPE_CHECKING:
    from .registry import PluginRegistry

__all__ = ["CustomPlugin"]


class CustomPlugin:
    """A plugin: what is known of it, the ops that it brings, and what it does as it comes and goes.

    Functions are set with `set_…_fn`, or a subclass defines `custom_operations`, `initialize` and `cleanup`.

    >>> from minitensor import plugins
    >>> class Noise(plugins.CustomPlugin):
    ...     info = plugins.PluginInfo("noise", plugins.VersionInfo(1, 0, 0))
    ...
    ...     def initialize(self, registry):
    ...         print("here it is")
    >>> registry = plugins.PluginRegistry()
    >>> _ = registry.register(Noise())
    here it is
    """

    #: What the plugin says of itself; None if only its `plugin.json` does.
    info: PluginInfo | None = None
    _initialize_fn: Callable[[PluginRegistry], object] | None = None
    _cleanup_fn: Callable[[PluginRegistry], object] | None = None
    _custom_operations_fn: Callable[[], Iterable[Any]] | None = None

    def __init__(self, info: PluginInfo | None = None) -> None:
        if info is not None:
            if not isinstance(info, PluginInfo):
                raise TypeError(f"CustomPlugin takes a PluginInfo, got {type(info).__name__}")
            self.info = info

    def set_initialize_fn(self, function: Callable[[PluginRegistry], object]) -> None:
        """Calls `function(registry)` when the plugin is registered and has its ops; if it raises, they go again."""
        self._initialize_fn = _callable("set_initialize_fn", function)

    def set_cleanup_fn(self, function: Callable[[PluginRegistry], object]) -> None:
        """Calls `function(registry)` when the plugin is unregistered, before its ops are taken away."""
        self._cleanup_fn = _callable("set_cleanup_fn", function)

    def set_custom_operations_fn(self, function: Callable[[], Iterable[Any]]) -> None:
        """Takes the ops from `function()`: a list of what `CustomOpBuilder.build` or `@mt.custom_op` gave."""
        self._custom_operations_fn = _callable("set_custom_operations_fn", function)

    def initialize(self, registry: PluginRegistry) -> None:
        """Called when the plugin is registered. Ops that are registered in here belong to the plugin, too."""
        if self._initialize_fn is not None:
            self._initialize_fn(registry)

    def cleanup(self, registry: PluginRegistry) -> None:
        """Called when the plugin is unregistered."""
        if self._cleanup_fn is not None:
            self._cleanup_fn(registry)

    def custom_operations(self) -> Iterable[Any]:
        """The ops that the plugin brings."""
        return [] if self._custom_operations_fn is None else self._custom_operations_fn()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.info or ''})"


def _callable(setter: str, function: Any) -> Any:
    if not callable(function):
        raise TypeError(f"{setter} takes a function, got {type(function).__name__}")
    return function
