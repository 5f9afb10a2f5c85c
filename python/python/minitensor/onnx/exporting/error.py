"""The error of this package."""

from __future__ import annotations

__all__ = ["ExportError"]


class ExportError(ValueError):
    """A model cannot be exported. The message names the call, the reason, and what to do. No file was written."""
