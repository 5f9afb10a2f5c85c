"""Plugins of installed packages, which are found by entry points of the group `minitensor.plugins`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .._minitensor import all_or_none
from .info import PluginInfo
from .log import debug, report
from .registry import LOCK, AlreadyLoaded

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["discover", "ensure"]

GROUP = "minitensor.plugins"
#: The entry points that were tried, by name and value.
_tried: set[tuple[str, str]] = set()
_begun = False


def ensure() -> bool:
    """Discovers plugins, unless that was done, or `MINITENSOR_PLUGINS_AUTOLOAD` is 0. Says whether it was done now."""
    global _begun
    with LOCK:
        if _begun or os.environ.get("MINITENSOR_PLUGINS_AUTOLOAD") == "0":
            return False
        discover()
        return True


def discover() -> list[PluginInfo]:
    """Loads the plugins of installed packages, and gives those that are new.

    It is called by itself when plugins are first asked for, or `mt.execute_custom_op` finds no op of a name. A plugin
    that fails is reported once, by a warning and by the logger `minitensor.plugins`, and stops nothing.
    """
    from importlib.metadata import entry_points

    global _begun
    found, failed = [], []
    with LOCK:
        # At once, as plugins may ask for plugins while they are loaded.
        _begun = True
        for entry in entry_points(group=GROUP):
            if (entry.name, entry.value) in _tried:
                continue
            _tried.add((entry.name, entry.value))
            debug("found %s = %s", entry.name, entry.value)
            try:
                found.append(_load(entry))
            except AlreadyLoaded as error:
                # Who has loaded another one of that name wants that one.
                debug("%s = %s was not loaded: %s", entry.name, entry.value, error)
            except Exception as error:
                failed.append((entry, error))
    for entry, cause in failed:
        of = f" of {entry.dist.name}" if entry.dist else ""
        report(f"plugin '{entry.name}'{of} ({entry.value}) was not loaded: {cause}", cause)
    return found


def _load(entry: EntryPoint) -> PluginInfo:
    from . import loaded
    from .plugin import CustomPlugin

    with all_or_none() as ops:
        value = entry.load()
        plugin = value() if callable(value) else value
        if not isinstance(plugin, str | os.PathLike | CustomPlugin):
            raise TypeError(f"it must be a function that gives a path or a CustomPlugin, got {type(plugin).__name__}")
        return loaded.load(plugin, ops)
