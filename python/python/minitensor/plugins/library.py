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
    """A plugin whose ops are defined in a shared library."""

    def __init__(self, info: PluginInfo, path: Path) -> None:
        super().__init__(info)
        self._path = path
        self._library: _minitensor.PluginLibrary | None = None

    def custom_operations(self) -> Iterable[Any]:
        """Calls `init` of the library, and returns the ops that it registers."""
        debug("loading %s", self._path)
        library = _minitensor._open_library(self._path)
        ops = library.init()
        self._library = library
        return ops

    def cleanup(self, registry: PluginRegistry) -> None:
        """Calls `fini` of the library, if `init` has succeeded."""
        library, self._library = self._library, None
        if library is not None:
            library.fini()


def inspect(path: Path) -> tuple[PluginInfo, str, str]:
    """Returns the metadata of a library, its ABI version and its compiler, without running any of its code."""
    fields = _minitensor._inspect_library(path)
    versions = ("version", "min_minitensor_version", "max_minitensor_version")
    found: dict[str, Any] = {f: fields[f] for f in ("name", "description", "author")}
    found |= {f: VersionInfo.parse(text) for f in versions if (text := fields[f])}
    info = manifest.complete(PluginInfo(**found, kind="library", path=str(path)), path)
    return info, str(fields["abi"]), str(fields["built_with"])


def load(registry: PluginRegistry, path: Path) -> PluginInfo:
    """Loads a shared library and registers its ops."""
    info = inspect(path)[0]
    plugin = LibraryPlugin(info, path)
    try:
        return registry.register_with_info(plugin, info)
    except BaseException:
        try:
            plugin.cleanup(registry)
        except Exception as error:
            report(f"plugin '{info.name}' was not loaded, and its cleanup failed too: {error}", error)
        raise
