"""The lock that is held while plugins come and go."""

from __future__ import annotations

import threading

__all__ = ["LOCK"]


class _Lock:
    """A lock that its thread may take again, and that tells whose it is."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._thread: int | None = None
        self._depth = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._thread = threading.get_ident()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._thread = None
        self._lock.release()

    @property
    def is_mine(self) -> bool:
        """Whether this thread holds it."""
        return self._thread == threading.get_ident()


#: Held while plugins come and go, in whatever registry, as there is one table of ops. A plugin may load others.
LOCK = _Lock()
