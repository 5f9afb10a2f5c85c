"""The global plugin registry."""

from __future__ import annotations

import os
from collections.abc import Iterable

from .._minitensor import CustomOp
from . import discovery
from .info import PluginInfo
from .plugin import CustomPlugin
from .registry import PluginRegistry

__all__ = ["get_plugin_info", "is_plugin_loaded", "list_plugins", "load_plugin", "unload_plugin"]

REGISTRY = PluginRegistry()


def load_plugin(plugin: str | os.PathLike[str] | CustomPlugin) -> PluginInfo:
    """Loads a plugin, and returns its metadata.

    `plugin` is a `CustomPlugin`, or the path of a Python file, of a folder with an `__init__.py`, or of a shared
    library. A Python file defines a function `minitensor_plugin()` that returns a `CustomPlugin`, or a variable
    `plugin` that holds one. The plugin takes precedence over an installed plugin of the same name, unless that was
    discovered before.
    """
    return load(plugin)


def load(plugin: str | os.PathLike[str] | CustomPlugin, ops: Iterable[CustomOp] = ()) -> PluginInfo:
    """Loads a plugin without discovering others. `ops` belong to `plugin` if it is a `CustomPlugin`."""
    if isinstance(plugin, CustomPlugin):
        return REGISTRY.register(plugin, ops)
    if not isinstance(plugin, str | os.PathLike):
        raise TypeError(f"load_plugin takes the path of a file, or a CustomPlugin, got {plugin!r}")
    # Imported on demand to keep `import minitensor` fast.
    from . import file

    return file.load(REGISTRY, plugin)


def unload_plugin(name: str) -> None:
    """Unloads a plugin: calls its cleanup function, and unregisters its ops."""
    discovery.discover_once()
    REGISTRY.unregister(name)


def list_plugins() -> list[PluginInfo]:
    """Returns the metadata of all loaded plugins."""
    discovery.discover_once()
    return REGISTRY.list_plugins()


def get_plugin_info(name: str) -> PluginInfo:
    """Returns the metadata of a loaded plugin."""
    discovery.discover_once()
    return REGISTRY.get_plugin_info(name)


def is_plugin_loaded(name: str) -> bool:
    """Returns whether a plugin of this name is loaded."""
    discovery.discover_once()
    return REGISTRY.is_registered(name)
