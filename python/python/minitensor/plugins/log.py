"""What is told of plugins that come and go, and of those that fail.

`logging` is imported when there is something to tell, as `import minitensor` should be quick.
"""

from __future__ import annotations

import warnings

__all__ = ["debug", "report"]

LOGGER = "minitensor.plugins"


def debug(message: str, *values: object) -> None:
    """Tells what happens to whoever wants to know."""
    import logging

    logging.getLogger(LOGGER).debug(message, *values)


def report(message: str, error: BaseException) -> None:
    """Tells of a failure that stops nothing."""
    import logging

    logging.getLogger(LOGGER).warning(message, exc_info=error)
    warnings.warn(message, RuntimeWarning, stacklevel=3)
