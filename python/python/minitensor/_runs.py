"""Python code that runs before each run of a graph, such as the count of steps of an optimizer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ._minitensor import _is_recording, _last_call_takes

#: A function that returns numbers for attributes of calls.
Numbers = Callable[[], Sequence[float]]


class _Current(threading.local):
    #: The functions of the running recording, in the order of their calls.
    functions: list[Numbers] | None = None


current = _Current()


def before_each(function: Callable[[], None]) -> None:
    """Calls a function now. If the calls of this thread are recorded, each run of the graph calls it, too."""
    function()
    if current.functions is not None and _is_recording():

        def run() -> tuple[float, ...]:
            function()
            return ()

        current.functions.append(run)


def last_call_takes(names: Sequence[str], numbers: Numbers) -> None:
    """States that each run of the graph computes these attributes of the last recorded call again."""
    if current.functions is not None and _is_recording():
        _last_call_takes(list(names))
        current.functions.append(numbers)
