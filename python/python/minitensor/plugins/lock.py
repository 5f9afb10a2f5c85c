"""The lock for loading and unloading plugins."""

from __future__ import annotations

import os
import threading

__all__ = ["LOCK"]


class _Lock:
    """A reentrant lock that reports whether the current thread holds it."""

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

    def reset_after_fork(self) -> None:
        """Frees the lock after a fork if another thread of the parent held it, which does not exist in the child."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock, self._thread, self._depth = threading.RLock(), None, 0

    @property
    def is_owned(self) -> bool:
        """Whether the current thread holds the lock."""
        return self._thread == threading.get_ident()


#: Held while plugins are loaded and unloaded. All registries share it, because ops are global. It is reentrant, because
#: a plugin may load other plugins.
LOCK = _Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LOCK.reset_after_fork)
