"""What is told of plugins that come and go, and of those that fail."""

from __future__ import annotations

import logging
import warnings

__all__ = ["logger", "report"]

logger = logging.getLogger("minitensor.plugins")


def report(message: str, error: BaseException) -> None:
    """Tells of a failure that stops nothing."""
    logger.warning(message, exc_info=error)
    warnings.warn(message, RuntimeWarning, stacklevel=3)
