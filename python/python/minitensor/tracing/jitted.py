"""`jit`, and the function that it returns."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, ParamSpec, TypeVar

from .._minitensor import (
    Graph,
    Tensor,
    _boundary,
    _is_recording,
    _record_cancel,
    _record_finish,
    _record_start,
    is_grad_enabled,
)
from .. import _runs as runs
from . import tree, watch

P = ParamSpec("P")
R = TypeVar("R")

#: A function whose graph was recorded so many times for the same kind of arguments runs without a graph.
MOST = 16


class _Entry(NamedTuple):
    """A graph, and what a call needs besides it."""

    graph: Graph
    rebuild: tree.Rebuild
    #: Functions that compute the numbers of each run.
    numbers: list[runs.Numbers]
    #: The Python state that the function refers to.
    state: dict[str, Hashable]


class Jitted(watch.Watched):
    """A function under `mt.jit`. `graphs` are the graphs that were recorded."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._entries: dict[Hashable, list[_Entry]] = {}
        #: The number of recordings for each key.
        self._recordings: dict[Hashable, int] = {}

    def watched(self) -> dict[str, Any]:
        return {"function": self._function}

    @property
    def graphs(self) -> list[Graph]:
        """The graphs that were recorded, one for each kind of arguments."""
        return [entry.graph for entries in self._entries.values() for entry in entries]

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _is_recording():
            return self._function(*args, **kwargs)
        tensors: list[Tensor] = []
        parts: list[Hashable] = []
        tree.flatten(args, tensors, parts)
        if kwargs:
            tree.flatten(kwargs, tensors, parts)
        key = tuple(parts)
        entries = self._entries.get(key)
        state = watch.state(self._function, [part.value for part in parts if isinstance(part, tree.Same)])
        if entries is not None:
            for entry in list(entries):
                if entry.state == state and entry.graph._matches(tensors):
                    if entry.graph._is_stale():
                        entries.remove(entry)
                        break
                    return self._run(entry, tensors)
        count = self._recordings.get(key, 0)
        if count >= MOST:
            return self._give_up(key, state, args, kwargs)
        self._recordings[key] = count + 1
        entry, result = self._record(args, kwargs, tensors, is_first=count == 0)
        self._entries.setdefault(key, []).append(entry._replace(state=state))
        return result

    @staticmethod
    def _run(entry: _Entry, tensors: list[Tensor]) -> Any:
        numbers = [number for function in entry.numbers for number in function()]
        return entry.rebuild(iter(entry.graph._run(tensors, numbers)))

    def _record(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor], is_first: bool
    ) -> tuple[_Entry, Any]:
        # The history of an argument is not part of the graph.
        inner = [_boundary(t) if t.requires_grad and not t.is_leaf and is_grad_enabled() else t for t in tensors]
        given: list[Tensor] = []
        rebuild_args, rebuild_kwargs = tree.rebuilder(args, given), tree.rebuilder(kwargs, given)
        iterator = iter(inner)
        inner_args, inner_kwargs = rebuild_args(iterator), rebuild_kwargs(iterator)
        _record_start(inner)
        runs.current.functions = []
        try:
            result = self._function(*inner_args, **inner_kwargs)
            outputs: list[Tensor] = []
            rebuild = tree.rebuilder(result, outputs)
            graph, results = _record_finish(tensors, outputs, is_first)
        finally:
            _record_cancel()
            functions, runs.current.functions = runs.current.functions, None
        return _Entry(graph, rebuild, functions or [], {}), rebuild(iter(results))

    def _give_up(self, key: Hashable, state: dict[str, Hashable], args: Any, kwargs: Any) -> Any:
        if self._recordings[key] == MOST:
            self._recordings[key] += 1
            before = self._entries[key][-1].state if self._entries.get(key) else {}
            changed = [place for place in state if state[place] != before.get(place)]
            what = f", because {changed[0]} changes" if changed else ", because its tensors are replaced"
            warnings.warn(
                f"mt.jit: {self._function!r} was recorded {MOST} times for the same kind of arguments{what}; it now runs without a graph. "
                "Pass what changes as a tensor",
                RuntimeWarning,
                stacklevel=3,
            )
        return self._function(*args, **kwargs)


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Records a function of tensors as a graph, which runs instead of it from the second call.

    Arguments and results are tensors, plain values, and lists, tuples and dicts of them. A new graph is recorded for
    other shapes, dtypes, layouts and plain values, and if the Python state that the function refers to changes. A run
    repeats the calls of ops, but no other Python code of the function.

    >>> import minitensor as mt
    >>> @mt.jit
    ... def f(x):
    ...     return (x * 2 + 1).tanh()
    >>> f(mt.zeros(2)).shape
    (2,)
    >>> f.graphs[0].ops
    ['fused(multiply, add, tanh)']

    Raises RuntimeError if the function reads elements of a tensor, as by `if` or `item()`.
    """
    if not callable(function):
        raise TypeError(f"mt.jit takes a function, got {type(function).__name__}")
    return Jitted(function)  # type: ignore[return-value]


def _user_position() -> str | None:
    """Returns the file and line of the code outside of this package that is running."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").split(".")[0] != "minitensor":
            return f"{frame.f_code.co_filename}, line {frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return None
