"""Plugins, step by step."""

from __future__ import annotations

from typing import Any, Self

from .info import PluginInfo
from .plugin import CustomPlugin
from .version import VersionInfo

__all__ = ["PluginBuilder"]


class PluginBuilder:
    """Makes a plugin step by step. A name and a version are needed, all else is not.

    >>> from minitensor.plugins import PluginBuilder, VersionInfo
    >>> plugin = PluginBuilder().name("noise").version(VersionInfo(1, 0, 0)).description("Kinds of noise").build()
    >>> plugin.info.description
    'Kinds of noise'
    """

    def __init__(self) -> None:
        self._given: dict[str, Any] = {}

    def _set(self, field: str, value: object) -> Self:
        self._given[field] = value
        return self

    def name(self, name: str) -> Self:
        """The name by which the plugin is found."""
        return self._set("name", name)

    def version(self, version: VersionInfo) -> Self:
        """The version of the plugin itself."""
        return self._set("version", version)

    def description(self, description: str) -> Self:
        """What the plugin is for, in a sentence."""
        return self._set("description", description)

    def author(self, author: str) -> Self:
        """Who made it."""
        return self._set("author", author)

    def min_minitensor_version(self, version: VersionInfo) -> Self:
        """The oldest minitensor that the plugin supports."""
        return self._set("min_minitensor_version", version)

    def max_minitensor_version(self, version: VersionInfo) -> Self:
        """The newest minitensor that the plugin supports."""
        return self._set("max_minitensor_version", version)

    def build(self) -> CustomPlugin:
        """The plugin, not yet registered."""
        if missing := [field for field in ("name", "version") if field not in self._given]:
            calls = " and ".join(f".{field}(…)" for field in missing)
            raise ValueError(f"a plugin needs a name and a version; call {calls} before .build()")
        return CustomPlugin(PluginInfo(**self._given))
