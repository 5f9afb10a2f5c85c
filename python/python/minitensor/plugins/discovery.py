"""Discovers the plugins of installed packages by their entry points in the group `minitensor.plugins`."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

from .._minitensor import _set_has_pending_plugins, all_or_none
from .info import PluginInfo
from .lock import LOCK
from .log import debug, report
from .registry import AlreadyLoaded

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["discover", "discover_once", "enable_autoload"]

GROUP = "minitensor.plugins"
#: Held during discovery. `LOCK` is not held, because another thread may load a plugin while it imports a module.
_DISCOVERING = threading.RLock()
#: The names and values of the entry points that have been tried.
_tried: set[tuple[str, str]] = set()
_has_started = False


def _reset_lock() -> None:
    """Frees the lock after a fork if another thread of the parent held it, which does not exist in the child."""
    global _DISCOVERING
    if _DISCOVERING.acquire(blocking=False):
        _DISCOVERING.release()
    else:
        _DISCOVERING = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_lock)


def _is_enabled() -> bool:
    return os.environ.get("MINITENSOR_PLUGINS_AUTOLOAD") != "0"


def enable_autoload() -> None:
    """Makes `mt.ops` discover plugins on access to an unknown op, if any plugins are installed."""
    if _is_enabled() and _is_any_installed():
        _set_has_pending_plugins(True)


def _is_any_installed() -> bool:
    """Returns whether a package in a folder of `sys.path` has an entry point in the group.

    Reads the files directly, because importing `importlib.metadata` takes as long as importing minitensor.
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


def discover_once() -> None:
    """Discovers plugins once, unless `MINITENSOR_PLUGINS_AUTOLOAD` is 0."""
    # Another thread may be discovering plugins and wait for `LOCK`. A thread that holds `LOCK` must not wait for it.
    if _is_enabled() and _DISCOVERING.acquire(blocking=not LOCK.is_owned):
        try:
            if not _has_started:
                discover()
        finally:
            _DISCOVERING.release()


def discover() -> list[PluginInfo]:
    """Loads the plugins of installed packages, and returns those that are new.

    It runs automatically when plugins are first listed, or when an unknown op is first used. If a plugin fails to load,
    a warning and the logger `minitensor.plugins` report it once, and discovery continues.
    """
    from importlib.metadata import entry_points

    global _has_started
    found: list[PluginInfo] = []
    failed: list[tuple[EntryPoint, BaseException]] = []
    with _DISCOVERING:
        # Set first, because a plugin may list plugins while it is loaded.
        _has_started = True
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
                    # A plugin of the same name that was loaded explicitly takes precedence.
                    debug("%s = %s was not loaded: %s", *key, error)
            except (Exception, SystemExit) as error:
                failed.append((entry, error))
            except BaseException:
                # After Ctrl-C, the next use discovers plugins again.
                _tried.discard(key)
                _has_started = False
                raise
        _set_has_pending_plugins(False)
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
            raise TypeError(f"it must be a function that returns a path or a CustomPlugin, got {type(plugin).__name__}")
        return loaded.load(plugin, ops)
