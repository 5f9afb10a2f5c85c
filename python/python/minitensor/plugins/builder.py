"""The builder of plugins."""

from __future__ import annotations

from typing import Any, Self

from .info import PluginInfo
from .plugin import CustomPlugin
from .version import VersionInfo

__all__ = ["PluginBuilder"]


class PluginBuilder:
    """Builds a plugin step by step. The name and the version are required.

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
        """Sets the name of the plugin."""
        return self._set("name", name)

    def version(self, version: VersionInfo) -> Self:
        """Sets the version of the plugin."""
        return self._set("version", version)

    def description(self, description: str) -> Self:
        """Sets the description, a sentence."""
        return self._set("description", description)

    def author(self, author: str) -> Self:
        """Sets the author."""
        return self._set("author", author)

    def min_minitensor_version(self, version: VersionInfo) -> Self:
        """Sets the oldest supported version of minitensor."""
        return self._set("min_minitensor_version", version)

    def max_minitensor_version(self, version: VersionInfo) -> Self:
        """Sets the newest supported version of minitensor."""
        return self._set("max_minitensor_version", version)

    def build(self) -> CustomPlugin:
        """Returns the plugin without registering it."""
        if missing := [field for field in ("name", "version") if field not in self._given]:
            calls = " and ".join(f".{field}(…)" for field in missing)
            raise ValueError(f"a plugin needs a name and a version; call {calls} before .build()")
        return CustomPlugin(PluginInfo(**self._given))
