"""Plugins written in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .info import PluginInfo

if TYPE_CHECKING:
    from .registry import PluginRegistry

__all__ = ["CustomPlugin"]


class CustomPlugin:
    """A plugin: its metadata, its ops, and functions to run when it is loaded and unloaded.

    Set the functions with `set_…_fn`, or define the methods `custom_operations`, `initialize` and `cleanup` in a
    subclass.

    >>> from minitensor import plugins
    >>> class Noise(plugins.CustomPlugin):
    ...     info = plugins.PluginInfo("noise", plugins.VersionInfo(1, 0, 0))
    ...
    ...     def initialize(self, registry):
    ...         print("initialized")
    >>> registry = plugins.PluginRegistry()
    >>> _ = registry.register(Noise())
    initialized
    """

    #: The metadata of the plugin, or None if it is in `plugin.json`.
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
        """Sets a function to call after the ops are registered. If it raises, the ops are unregistered."""
        self._initialize_fn = _callable("set_initialize_fn", function)

    def set_cleanup_fn(self, function: Callable[[PluginRegistry], object]) -> None:
        """Sets a function to call when the plugin is unregistered, before its ops are removed."""
        self._cleanup_fn = _callable("set_cleanup_fn", function)

    def set_custom_operations_fn(self, function: Callable[[], Iterable[Any]]) -> None:
        """Sets a function that returns the ops: a list of results of `CustomOpBuilder.build` or `@mt.custom_op`."""
        self._custom_operations_fn = _callable("set_custom_operations_fn", function)

    def initialize(self, registry: PluginRegistry) -> None:
        """Called when the plugin is registered. Ops that this method registers belong to the plugin."""
        if self._initialize_fn is not None:
            self._initialize_fn(registry)

    def cleanup(self, registry: PluginRegistry) -> None:
        """Called when the plugin is unregistered."""
        if self._cleanup_fn is not None:
            self._cleanup_fn(registry)

    def custom_operations(self) -> Iterable[Any]:
        """Returns the ops of the plugin."""
        return [] if self._custom_operations_fn is None else self._custom_operations_fn()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.info or ''})"


def _callable(setter: str, function: Any) -> Any:
    if not callable(function):
        raise TypeError(f"{setter} takes a function, got {type(function).__name__}")
    return function
