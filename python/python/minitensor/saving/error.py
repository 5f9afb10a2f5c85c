"""The error of this package."""

from __future__ import annotations

__all__ = ["FileError"]


class FileError(ValueError):
    """A file cannot be loaded. The message names the part of the file, and what to do. Nothing was loaded."""
