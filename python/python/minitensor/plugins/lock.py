"""The lock that is held while plugins come and go."""

from __future__ import annotations

import os
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

    def renew(self) -> None:
        """Makes it free in a child process if another thread of the parent held it: that thread isn't there."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock, self._thread, self._depth = threading.RLock(), None, 0

    @property
    def is_mine(self) -> bool:
        """Whether this thread holds it."""
        return self._thread == threading.get_ident()


#: Held while plugins come and go, in whatever registry, as there is one table of ops. A plugin may load others.
LOCK = _Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LOCK.renew)
