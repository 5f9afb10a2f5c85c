"""Plugins: named and versioned collections of ops and layers that can be loaded and unloaded.

>>> import minitensor as mt
>>> from minitensor import plugins
>>> info = plugins.PluginInfo("docs_plugin", plugins.VersionInfo(1, 0, 0))
>>> plugin = plugins.CustomPlugin(info)
>>> plugin.set_custom_operations_fn(lambda: [mt.CustomOpBuilder("docs_triple", 1).forward(lambda x: x * 3).build()])
>>> plugins.load_plugin(plugin).ops
('docs_triple',)
>>> mt.ops.docs_triple(mt.Tensor([2.0]))
tensor([6.])
>>> plugins.unload_plugin("docs_plugin")

`load_plugin` and the related functions use one global registry. A separate `PluginRegistry` has its own list. Plugins
of installed packages are discovered automatically (`discover`).
"""

from .builder import PluginBuilder
from .discovery import discover
from .info import PluginInfo
from .layer import CustomLayer
from .loaded import get_plugin_info, is_plugin_loaded, list_plugins, load_plugin, unload_plugin
from .plugin import CustomPlugin
from .registry import PluginRegistry
from .version import VersionInfo

__all__ = [
    "CustomLayer",
    "CustomPlugin",
    "PluginBuilder",
    "PluginInfo",
    "PluginRegistry",
    "VersionInfo",
    "discover",
    "get_plugin_info",
    "is_plugin_loaded",
    "list_plugins",
    "load_plugin",
    "unload_plugin",
]
