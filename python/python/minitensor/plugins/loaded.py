"""The plugins of the whole program."""

from __future__ import annotations

import os
from collections.abc import Iterable

from .._minitensor import BuiltOp
from . import discovery
from .info import PluginInfo
from .plugin import CustomPlugin
from .registry import PluginRegistry

__all__ = ["get_plugin_info", "is_plugin_loaded", "list_plugins", "load_plugin", "unload_plugin"]

REGISTRY = PluginRegistry()


def load_plugin(plugin: str | os.PathLike[str] | CustomPlugin) -> PluginInfo:
    """Loads a plugin from a file, and gives what is known of it.

    A Python file, or a folder with an `__init__.py`, has a function `minitensor_plugin()` that gives a `CustomPlugin`,
    or an object `plugin` that is one. A shared library and a `CustomPlugin` itself are loaded, too. An installed plugin
    of the same name stays out, unless it was discovered before.
    """
    return load(plugin)


def load(plugin: str | os.PathLike[str] | CustomPlugin, ops: Iterable[BuiltOp] = ()) -> PluginInfo:
    """As `load_plugin`, but discovers nothing; `ops` belong to the plugin, if it is one itself."""
    if isinstance(plugin, CustomPlugin):
        return REGISTRY.register(plugin, ops)
    if not isinstance(plugin, str | os.PathLike):
        raise TypeError(f"load_plugin takes the path of a file, or a CustomPlugin, got {plugin!r}")
    # What it takes to load a file is imported when there is one, as `import minitensor` should be quick.
    from . import file

    return file.load(REGISTRY, plugin)


def unload_plugin(name: str) -> None:
    """Unloads a plugin: calls its cleanup, and takes its ops away."""
    discovery.ensure()
    REGISTRY.unregister(name)


def list_plugins() -> list[PluginInfo]:
    """What is known of each plugin that is loaded."""
    discovery.ensure()
    return REGISTRY.list_plugins()


def get_plugin_info(name: str) -> PluginInfo:
    """What is known of a plugin that is loaded."""
    discovery.ensure()
    return REGISTRY.get_plugin_info(name)


def is_plugin_loaded(name: str) -> bool:
    """Whether a plugin of that name is loaded."""
    discovery.ensure()
    return REGISTRY.is_registered(name)
