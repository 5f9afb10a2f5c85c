"""Log messages and warnings about plugins.

`logging` is imported on demand to keep `import minitensor` fast.
"""

from __future__ import annotations

import warnings

__all__ = ["debug", "report"]

LOGGER = "minitensor.plugins"


def debug(message: str, *values: object) -> None:
    """Logs a message at the level DEBUG."""
    import logging

    logging.getLogger(LOGGER).debug(message, *values)


def report(message: str, error: BaseException) -> None:
    """Logs a failure that is not raised, and issues a RuntimeWarning."""
    import logging

    logging.getLogger(LOGGER).warning(message, exc_info=error)
    warnings.warn(message, RuntimeWarning, stacklevel=3)
