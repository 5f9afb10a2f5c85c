"""The error of this package."""

from __future__ import annotations

__all__ = ["IRError"]


class IRError(ValueError):
    """An IR is malformed, or a call of it cannot be computed. The message names the node and what to do."""
