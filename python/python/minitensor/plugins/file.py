"""Plugins that are files, by what kind of file they are."""

from __future__ import annotations

import os
from pathlib import Path

from . import library, source
from .info import PluginInfo
from .registry import PluginRegistry

__all__ = ["load"]


def load(registry: PluginRegistry, file: str | os.PathLike[str]) -> PluginInfo:
    """Loads a Python file, a folder with an `__init__.py`, or a shared library."""
    path = Path(file).absolute()
    if not path.exists():
        raise FileNotFoundError(
            f"there is no file '{file}' to load a plugin from; the working directory is {Path.cwd()}"
        )
    if path.is_dir():
        path /= "__init__.py"
    if path.suffix in library.SUFFIXES:
        return library.load(registry, path)
    if path.suffix != ".py" or not path.exists():
        kinds = ", ".join(f"'*{s}'" for s in (".py", *library.SUFFIXES))
        raise ValueError(f"'{file}' is no plugin: a plugin is a file {kinds}, or a folder with an __init__.py")
    return source.load(registry, path)
