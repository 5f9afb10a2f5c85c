"""Loads plugins from files of all kinds."""

from __future__ import annotations

import os
from pathlib import Path

from . import library, source
from .info import PluginInfo
from .registry import PluginRegistry

__all__ = ["find", "load"]


def find(file: str | os.PathLike[str]) -> Path:
    """Returns the file of a plugin, which for a folder is its `__init__.py`."""
    path = Path(file).absolute()
    if not path.exists():
        raise FileNotFoundError(f"there is no plugin file '{file}'; the working directory is {Path.cwd()}")
    if path.is_dir():
        path /= "__init__.py"
    if path.suffix not in (".py", *library.SUFFIXES) or not path.exists():
        kinds = ", ".join(f"'*{s}'" for s in (".py", *library.SUFFIXES))
        raise ValueError(f"'{file}' is not a plugin; expected a file {kinds}, or a folder with an __init__.py")
    return path


def load(registry: PluginRegistry, file: str | os.PathLike[str]) -> PluginInfo:
    """Loads a Python file, a folder with an `__init__.py`, or a shared library."""
    path = find(file)
    if path.suffix in library.SUFFIXES:
        return library.load(registry, path)
    return source.load(registry, path)
