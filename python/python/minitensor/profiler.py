"""Records which ops run, and how long they take.

>>> import minitensor as mt
>>> x = mt.ones((128, 64))
>>> with mt.profiler.profile() as p:
...     y = mt.ops.softmax(x, axis=-1) + 1
>>> [(event.name, event.shapes) for event in p.events()]
[('softmax', 'float32[128, 64]'), ('add', 'float32[128, 64]')]
>>> print(p)  # doctest: +SKIP
>>> p.export_chrome_trace("trace.json")  # doctest: +SKIP
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import NamedTuple

from ._minitensor import DType, _Profile

__all__ = ["Average", "Event", "profile"]


class Event(NamedTuple):
    """One call of an op."""

    #: The name of the op.
    name: str
    #: The dtype and the shape of each tensor among the arguments.
    inputs: tuple[tuple[DType, tuple[int, ...]], ...]
    #: The size of the outputs in bytes. Outputs that share memory with an input do not count.
    bytes: int
    #: The number of the thread that called, from 0.
    thread: int
    #: The start of the call, in nanoseconds since the start of the profile.
    start: int
    #: The duration of the call in nanoseconds. It includes the calls that this call made.
    duration: int
    #: The duration without the calls that this call made.
    self_time: int

    @property
    def shapes(self) -> str:
        """The dtypes and shapes of the inputs as a text, such as `float32[2, 3], int64[]`."""
        return ", ".join(f"{dtype.name}{list(shape)}" for dtype, shape in self.inputs)


class Average(NamedTuple):
    """All calls of one op, or of one op with the same dtypes and shapes."""

    name: str
    #: The dtypes and shapes of the inputs; empty if the calls are grouped by name alone.
    shapes: str
    calls: int
    #: The sum of the durations in nanoseconds.
    duration: int
    #: The sum of the durations without inner calls, in nanoseconds.
    self_time: int
    #: The sum of the bytes.
    bytes: int


_ORDERS: dict[str, Callable[[Average], int]] = {
    "self_time": lambda row: row.self_time,
    "duration": lambda row: row.duration,
    "calls": lambda row: row.calls,
    "bytes": lambda row: row.bytes,
}


class profile:
    """A context manager that records the calls of ops on all threads.

    The backward pass calls ops too: the gradient of `swish` appears as `swish.vjp`. Recording a call takes about a
    microsecond. Without a profile, calls are as fast as before.

    >>> import minitensor as mt
    >>> x = mt.Tensor([1.0, 2.0], requires_grad=True)
    >>> with mt.profiler.profile() as p:
    ...     mt.ops.swish(x).sum().backward()
    >>> {"swish", "sum", "swish.vjp"} <= {event.name for event in p.events()}
    True
    """

    def __init__(self) -> None:
        self._profile: _Profile | None = None

    def __enter__(self) -> profile:
        if self._profile is not None:
            raise RuntimeError("this profile has recorded already; create another one")
        self._profile = _Profile()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._profile is not None:
            self._profile.stop()

    def events(self) -> list[Event]:
        """Returns the calls that have ended, in the order in which they began."""
        if self._profile is None:
            raise RuntimeError("this profile has not recorded yet; use it in a with statement")
        return [
            Event(name, tuple((dtype, tuple(shape)) for dtype, shape in inputs), *numbers)
            for name, inputs, *numbers in self._profile.events()
        ]

    def averages(self, group_by_shape: bool = False) -> list[Average]:
        """Returns one entry for each op, or for each op and the dtypes and shapes of its inputs."""
        rows: dict[tuple[str, str], Average] = {}
        for event in self.events():
            key = (event.name, event.shapes if group_by_shape else "")
            row = rows.get(key, Average(*key, 0, 0, 0, 0))
            rows[key] = Average(
                *key,
                row.calls + 1,
                row.duration + event.duration,
                row.self_time + event.self_time,
                row.bytes + event.bytes,
            )
        return list(rows.values())

    def table(self, sort_by: str = "self_time", row_limit: int | None = 30, group_by_shape: bool = False) -> str:
        """Returns a table with a row for each op, in descending order.

        `sort_by` is `"self_time"`, `"duration"`, `"calls"` or `"bytes"`. `row_limit=None` shows all rows.
        """
        if sort_by not in _ORDERS:
            raise ValueError(f"sort_by must be one of {', '.join(map(repr, _ORDERS))}, got {sort_by!r}")
        rows = sorted(self.averages(group_by_shape), key=_ORDERS[sort_by], reverse=True)
        shown = rows[:row_limit]
        calls, self_time = sum(row.calls for row in rows), sum(row.self_time for row in rows)
        columns = [
            ["op", *(row.name for row in shown)],
            ["calls", *(str(row.calls) for row in shown)],
            ["self", *(_time(row.self_time) for row in shown)],
            ["self %", *(f"{100 * row.self_time / max(self_time, 1):.1f}" for row in shown)],
            ["total", *(_time(row.duration) for row in shown)],
            ["mean", *(_time(row.duration / row.calls) for row in shown)],
            ["bytes", *(_size(row.bytes) for row in shown)],
        ]
        if group_by_shape:
            columns.append(["inputs", *(row.shapes for row in shown)])
        lines = [line.rstrip() for line in map("  ".join, zip(*map(_aligned, columns), strict=True))]
        if len(shown) < len(rows):
            lines.append(f"… {len(rows) - len(shown)} more")
        lines.append(f"{calls} {'call' if calls == 1 else 'calls'}, {_time(self_time)} in all")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the calls in the Trace Event Format, which `chrome://tracing` and Perfetto open."""
        pid = os.getpid()
        trace: list[dict[str, object]] = [
            {
                "name": event.name,
                "cat": "op",
                "ph": "X",
                "ts": event.start / 1000,
                "dur": event.duration / 1000,
                "pid": pid,
                "tid": event.thread,
                "args": {"inputs": event.shapes, "bytes": event.bytes},
            }
            for event in self.events()
        ]
        for thread in sorted({event.thread for event in self.events()}):
            names = {"name": "thread_name", "ph": "M", "pid": pid, "tid": thread, "args": {"name": f"thread {thread}"}}
            trace.append(names)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": trace, "displayTimeUnit": "ns"}, file)


def _aligned(column: list[str]) -> list[str]:
    """Returns the cells of a column, with a rule below the header, at the same width. Names are aligned on the left."""
    width = max(map(len, column))
    align = str.ljust if column[0] in ("op", "inputs") else str.rjust
    header, *cells = [align(cell, width) for cell in column]
    return [header, "-" * width, *cells]


def _time(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3f} {unit}"
    return f"{nanoseconds / 1000:.3f} µs"


def _size(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"
