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
    """Runs a file, and registers the plugin that it defines. The ops that it registers itself belong to the plugin."""
    # The same file has the same name in every process, so that what is defined in it can be pickled.
    # A dot in it would name a package to import it from.
    stem = re.sub(r"\W", "_", path.stem).strip("_")
    name = f"minitensor_plugin_{stem}_{zlib.crc32(os.fsencode(path)):08x}"
    with LOCK:
        if loaded := [info.name for info in registry if info.path == str(path)]:
            raise ValueError(f"'{path}' is loaded already, as plugin '{loaded[0]}'; unload that one first")
        debug("running %s", path)
        try:
            with all_or_none() as ops:
                plugin = plugin_of(_run(name, path), str(path))
                info = manifest.complete(plugin.info, path)
                info = dataclasses.replace(info, path=str(path))
                return registry.take_in(plugin, info, ops, lambda: _forget(name))
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
    """Takes a module out, with its parts, so that the file is run anew when it is loaded again."""
    for key in [key for key in sys.modules if key == name or key.startswith(name + ".")]:
        del sys.modules[key]


def plugin_of(module: ModuleType, where: str) -> CustomPlugin:
    """The plugin that a module defines."""
    make, plugin = getattr(module, "minitensor_plugin", None), getattr(module, "plugin", None)
    if make is None and plugin is None:
        raise ValueError(f"'{where}' defines no plugin; write a function minitensor_plugin() that gives a CustomPlugin")
    made = plugin if make is None else make()
    if not isinstance(made, CustomPlugin):
        said = "its 'plugin' is" if make is None else "its minitensor_plugin() gave"
        raise TypeError(f"'{where}': {said} no CustomPlugin, but {made!r}")
    return made
