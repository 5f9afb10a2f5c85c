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
    """One call of an op. Times are in nanoseconds.

    - `name`: the name of the op
    - `inputs`: the dtype and the shape of each tensor among the arguments
    - `bytes`: the size of the outputs; outputs that share memory with an input do not count
    - `thread`: the number of the thread that called, from 0
    - `start`: the time from the start of the profile to the start of the call
    - `total`: the duration of the call, with the calls that it made
    - `self_time`: the duration without the calls that it made
    """

    name: str
    inputs: tuple[tuple[DType, tuple[int, ...]], ...]
    bytes: int
    thread: int
    start: int
    total: int
    self_time: int

    @property
    def shapes(self) -> str:
        """The dtypes and shapes of the inputs as a text, such as `float32[2, 3], int64[]`."""
        return ", ".join(f"{dtype.name}{list(shape)}" for dtype, shape in self.inputs)


class Average(NamedTuple):
    """All calls of one op, or of one op with the same dtypes and shapes. Times are in nanoseconds.

    - `name`: the name of the op
    - `shapes`: the dtypes and shapes of the inputs; empty if the calls are grouped by name alone
    - `calls`: the number of calls
    - `self_time`: the time in the op, without the ops that it called
    - `total`: the time in the op, with the ops that it called; a call within a call of the same op counts once
    - `bytes`: the size of the outputs
    """

    name: str
    shapes: str
    calls: int
    self_time: int
    total: int
    bytes: int

    @property
    def mean(self) -> float:
        """The total time divided by the number of calls."""
        return self.total / self.calls


#: The columns that a table can be sorted by.
_COLUMNS: dict[str, Callable[[Average], float]] = {
    "self": lambda row: row.self_time,
    "total": lambda row: row.total,
    "mean": lambda row: row.mean,
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
        """Returns one entry for each op, or for each op and the dtypes and shapes of its inputs.

        The entries are in the order of the first calls.
        """
        rows: dict[tuple[str, str], Average] = {}
        running: dict[int, list[tuple[str, int]]] = {}
        for event in self.events():
            # The calls of the same thread that this one is a part of: their names and ends.
            outer = running.setdefault(event.thread, [])
            while outer and outer[-1][1] <= event.start:
                outer.pop()
            is_outermost = all(name != event.name for name, _ in outer)
            outer.append((event.name, event.start + event.total))
            key = (event.name, event.shapes if group_by_shape else "")
            row = rows.get(key, Average(*key, 0, 0, 0, 0))
            rows[key] = Average(
                *key,
                row.calls + 1,
                row.self_time + event.self_time,
                row.total + (event.total if is_outermost else 0),
                row.bytes + event.bytes,
            )
        return list(rows.values())

    def table(self, sort_by: str = "self", row_limit: int | None = 30, group_by_shape: bool = False) -> str:
        """Returns a table with a row for each op, in descending order of a column.

        `sort_by` is `"self"`, `"total"`, `"mean"`, `"calls"` or `"bytes"`. `row_limit=None` shows all rows.
        """
        if sort_by not in _COLUMNS:
            raise ValueError(f"sort_by must be one of {', '.join(map(repr, _COLUMNS))}, got {sort_by!r}")
        if row_limit is not None and (not isinstance(row_limit, int) or row_limit < 1):
            raise ValueError(f"row_limit must be an integer of at least 1, or None for all rows, got {row_limit!r}")
        rows = sorted(self.averages(group_by_shape), key=_COLUMNS[sort_by], reverse=True)
        shown = rows[:row_limit]
        calls, self_time = sum(row.calls for row in rows), sum(row.self_time for row in rows)
        columns = [
            ["op", *(row.name for row in shown)],
            ["calls", *(str(row.calls) for row in shown)],
            ["self", *(_time(row.self_time) for row in shown)],
            ["self %", *(f"{100 * row.self_time / max(self_time, 1):.1f}" for row in shown)],
            ["total", *(_time(row.total) for row in shown)],
            ["mean", *(_time(row.mean) for row in shown)],
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

    def __repr__(self) -> str:
        return "<minitensor.profiler.profile, not started>" if self._profile is None else self.table()

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the calls in the Trace Event Format, which `chrome://tracing`, Perfetto and speedscope open."""
        pid, events = os.getpid(), self.events()
        # Viewers reserve thread 0: Perfetto merged it with thread 1.
        track = {event.thread: event.thread + 1 for event in events}
        trace: list[dict[str, object]] = [
            {
                "name": event.name,
                "cat": "op",
                "ph": "X",
                "ts": event.start / 1000,
                "dur": event.total / 1000,
                "pid": pid,
                "tid": track[event.thread],
                "args": {"inputs": event.shapes, "bytes": event.bytes},
            }
            for event in events
        ]
        for thread, tid in sorted(track.items()):
            names = {"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": {"name": f"thread {thread}"}}
            trace.append(names)
        # The times are in microseconds, as the format defines. The unit "ns" makes `chrome://tracing` compare them to
        # the nanosecond, not to the microsecond. Without the metadata, it warns that the times are imprecise.
        container = {"traceEvents": trace, "displayTimeUnit": "ns", "metadata": {"highres-ticks": True}}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(container, file)


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
