"""Plugins that are shared libraries."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import _minitensor
from . import manifest
from .info import PluginInfo
from .log import debug, report
from .plugin import CustomPlugin
from .registry import PluginRegistry
from .version import VersionInfo

__all__ = ["SUFFIXES", "LibraryPlugin", "inspect", "load"]

SUFFIXES = (".so", ".dylib", ".dll")


class LibraryPlugin(CustomPlugin):
    """A plugin whose ops come from a shared library."""

    def __init__(self, info: PluginInfo, path: Path) -> None:
        super().__init__(info)
        self._path = path
        self._library: _minitensor.PluginLibrary | None = None

    def custom_operations(self) -> Iterable[Any]:
        """The ops that the library's `init` hands over."""
        debug("loading %s", self._path)
        library = _minitensor._open_library(self._path)
        ops = library.init()
        self._library = library
        return ops

    def cleanup(self, registry: PluginRegistry) -> None:
        """Calls the library's `fini`, if its `init` has succeeded."""
        library, self._library = self._library, None
        if library is not None:
            library.fini()


def inspect(path: Path) -> tuple[PluginInfo, str, str]:
    """What a library says of itself, its plugin ABI, and what it was built with; nothing of it runs."""
    said = _minitensor._inspect_library(path)
    versions = ("version", "min_minitensor_version", "max_minitensor_version")
    found: dict[str, Any] = {f: said[f] for f in ("name", "description", "author")}
    found |= {f: VersionInfo.parse(text) for f in versions if (text := said[f])}
    info = manifest.complete(PluginInfo(**found, kind="library", path=str(path)), path)
    return info, str(said["abi"]), str(said["built_with"])


def load(registry: PluginRegistry, path: Path) -> PluginInfo:
    """Loads a shared library and registers what it brings."""
    info = inspect(path)[0]
    plugin = LibraryPlugin(info, path)
    try:
        return registry.take_in(plugin, info)
    except BaseException:
        try:
            plugin.cleanup(registry)
        except Exception as error:
            report(f"plugin '{info.name}' was not loaded, and its cleanup failed, too: {error}", error)
        raise
