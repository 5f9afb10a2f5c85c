"""Plugins: ops and layers that come from elsewhere, with a name, a version, and a way to take them away again.

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

`load_plugin` and its like work on one registry for the whole program; a `PluginRegistry` of one's own holds plugins
apart from those. Plugins that are installed as packages are found by themselves (`discover`).
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
