"""Plugins of installed packages, which are found by entry points of the group `minitensor.plugins`."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

from .._minitensor import _await_plugins, all_or_none
from .info import PluginInfo
from .lock import LOCK
from .log import debug, report
from .registry import AlreadyLoaded

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["discover", "ensure", "expect"]

GROUP = "minitensor.plugins"
#: Held during discovery. The registry's lock isn't: a module that is being imported may load a plugin.
_DISCOVERING = threading.RLock()
#: The entry points that were tried, by name and value.
_tried: set[tuple[str, str]] = set()
_begun = False


def _renew() -> None:
    """Makes the lock free in a child process if another thread of the parent held it: that thread isn't there."""
    global _DISCOVERING
    if _DISCOVERING.acquire(blocking=False):
        _DISCOVERING.release()
    else:
        _DISCOVERING = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def _is_on() -> bool:
    return os.environ.get("MINITENSOR_PLUGINS_AUTOLOAD") != "0"


def expect() -> None:
    """Lets `mt.ops` discover plugins when it is asked for what it doesn't have, if any are installed."""
    if _is_on() and _is_announced():
        _await_plugins(True)


def _is_announced() -> bool:
    """Whether some package in a folder of `sys.path` has an entry point of the group.

    It looks at the files: `importlib.metadata`, which is right everywhere, takes as long to import as minitensor.
    """
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                        if GROUP.encode() in file.read():
                            return True
                except OSError:
                    continue
    return False


def ensure() -> None:
    """Discovers plugins, unless that was done, or `MINITENSOR_PLUGINS_AUTOLOAD` is 0."""
    # Another thread may be at it. It waits for those that register plugins, which is why they don't wait for it.
    if _is_on() and _DISCOVERING.acquire(blocking=not LOCK.is_mine):
        try:
            if not _begun:
                discover()
        finally:
            _DISCOVERING.release()


def discover() -> list[PluginInfo]:
    """Loads the plugins of installed packages, and gives those that are new.

    It is called by itself when plugins are first asked for, or an op that isn't there. A plugin that fails is reported
    once, by a warning and by the logger `minitensor.plugins`, and stops nothing.
    """
    from importlib.metadata import entry_points

    global _begun
    found: list[PluginInfo] = []
    failed: list[tuple[EntryPoint, BaseException]] = []
    with _DISCOVERING:
        # At once, as plugins may ask for plugins while they are loaded.
        _begun = True
        for entry in entry_points(group=GROUP):
            key = (entry.name, entry.value)
            if key in _tried:
                continue
            _tried.add(key)
            debug("found %s = %s", *key)
            try:
                found.append(_load(entry))
            except AlreadyLoaded as error:
                if error.of_another:
                    failed.append((entry, error))
                else:
                    # Who has loaded another one of that name wants that one.
                    debug("%s = %s was not loaded: %s", *key, error)
            except (Exception, SystemExit) as error:
                failed.append((entry, error))
            except BaseException:
                # Whoever pressed Ctrl-C may ask again.
                _tried.discard(key)
                _begun = False
                raise
        _await_plugins(False)
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
