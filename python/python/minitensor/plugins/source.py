"""Plugins that are Python files."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
import sys
import zlib
from pathlib import Path
from types import ModuleType

from .._minitensor import all_or_none
from . import manifest
from .info import PluginInfo
from .lock import LOCK
from .log import debug
from .plugin import CustomPlugin
from .registry import PluginRegistry

__all__ = ["load", "plugin_of"]


def load(registry: PluginRegistry, path: Path) -> PluginInfo:
    """Runs a file and registers the plugin that it defines. Ops that the file registers belong to the plugin."""
    # The module name is the same in every process, so objects defined in the file can be pickled.
    # It contains no dot, because a dot would refer to a parent package.
    stem = re.sub(r"\W", "_", path.stem).strip("_")
    name = f"minitensor_plugin_{stem}_{zlib.crc32(os.fsencode(path)):08x}"
    with LOCK:
        if loaded := [info.name for info in registry if info.path == str(path)]:
            raise ValueError(f"'{path}' is already loaded as plugin '{loaded[0]}'; unload it first")
        debug("running %s", path)
        try:
            with all_or_none() as ops:
                plugin = plugin_of(_run(name, path), str(path))
                info = manifest.complete(plugin.info, path)
                info = dataclasses.replace(info, path=str(path))
                return registry.register_with_info(plugin, info, ops, lambda: _forget(name))
        except BaseException:
            _forget(name)
            raise


def _run(name: str, path: Path) -> ModuleType:
    folders = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folders)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _forget(name: str) -> None:
    """Removes a module and its submodules, so that loading the file again runs it again."""
    for key in [key for key in sys.modules if key == name or key.startswith(name + ".")]:
        del sys.modules[key]


def plugin_of(module: ModuleType, where: str) -> CustomPlugin:
    """Returns the plugin that a module defines."""
    make, plugin = getattr(module, "minitensor_plugin", None), getattr(module, "plugin", None)
    if make is None and plugin is None:
        raise ValueError(
            f"'{where}' defines no plugin; define a function minitensor_plugin() that returns a CustomPlugin"
        )
    made = plugin if make is None else make()
    if not isinstance(made, CustomPlugin):
        what = "the variable plugin must be" if make is None else "minitensor_plugin() must return"
        raise TypeError(f"'{where}': {what} a CustomPlugin, got {made!r}")
    return made
