"""The plugins of the whole program."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..built import BuiltOp
from . import discovery, library, source
from .info import PluginInfo
from .plugin import CustomPlugin
from .registry import PluginRegistry

__all__ = ["get_plugin_info", "is_plugin_loaded", "list_plugins", "load_plugin", "unload_plugin"]

REGISTRY = PluginRegistry()


def load_plugin(plugin: str | os.PathLike[str] | CustomPlugin) -> PluginInfo:
    """Loads a plugin from a file, and gives what is known of it.

    A Python file, or a folder with an `__init__.py`, has a function `minitensor_plugin()` that gives a `CustomPlugin`,
    or an object `plugin` that is one. A `CustomPlugin` itself is loaded, too.
    """
    discovery.ensure()
    return load(plugin)


def load(plugin: str | os.PathLike[str] | CustomPlugin, ops: Iterable[BuiltOp] = ()) -> PluginInfo:
    """As `load_plugin`, but discovers nothing; `ops` belong to the plugin, if it is one itself."""
    if isinstance(plugin, CustomPlugin):
        return REGISTRY.register(plugin, ops)
    if not isinstance(plugin, str | os.PathLike):
        raise TypeError(f"load_plugin takes the path of a file, or a CustomPlugin, got {plugin!r}")
    path = Path(plugin).absolute()
    if not path.exists():
        raise FileNotFoundError(
            f"there is no file '{plugin}' to load a plugin from; the working directory is {Path.cwd()}"
        )
    if path.is_dir():
        path /= "__init__.py"
    if path.suffix in library.SUFFIXES:
        return library.load(REGISTRY, path)
    if path.suffix != ".py" or not path.exists():
        kinds = ", ".join(f"'*{s}'" for s in (".py", *library.SUFFIXES))
        raise ValueError(f"'{plugin}' is no plugin: a plugin is a file {kinds}, or a folder with an __init__.py")
    return source.load(REGISTRY, path)


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
