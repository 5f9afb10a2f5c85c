"""Plugins that are shared libraries."""

from __future__ import annotations

from pathlib import Path

from .info import PluginInfo
from .registry import PluginRegistry

__all__ = ["SUFFIXES", "load"]

SUFFIXES = (".so", ".dylib", ".dll")


def load(registry: PluginRegistry, path: Path) -> PluginInfo:
    """Loads a shared library and registers what it brings."""
    raise NotImplementedError(f"'{path}' is a shared library, and this minitensor loads plugins from Python files only")
