"""Python code that runs before each run of a graph, such as the count of steps of an optimizer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ._minitensor import _is_recording, _last_call_takes

#: A function that returns numbers for attributes of calls.
Numbers = Callable[[], Sequence[float]]


class Recording:
    """What the recording of a graph collects in Python."""

    def __init__(self) -> None:
        #: The functions that each run calls, in order.
        self.functions: list[Numbers] = []
        #: Whether the graph may run again.
        self.is_kept = True


class _Current(threading.local):
    recording: Recording | None = None


current = _Current()


def recording() -> Recording | None:
    """Returns the recording of this thread."""
    return current.recording if current.recording is not None and _is_recording() else None


def before_each(function: Callable[[], None]) -> None:
    """Calls a function now. If the calls of this thread are recorded, each run of the graph calls it, too."""
    function()
    if (now := recording()) is not None:

        def run() -> tuple[float, ...]:
            function()
            return ()

        now.functions.append(run)


def last_call_takes(names: Sequence[str], numbers: Numbers) -> None:
    """States that each run of the graph computes these attributes of the last recorded call again."""
    if (now := recording()) is not None:
        _last_call_takes(list(names))
        now.functions.append(numbers)


def do_not_keep() -> None:
    """States that the graph of this recording depends on what changes in each call."""
    if (now := recording()) is not None:
        now.is_kept = False
