"""`jit`, and the function that it returns."""

from __future__ import annotations

import functools
import sys
import warnings
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Generic, ParamSpec, TypeVar

from .. import _runs as runs
from .._minitensor import (
    DType,
    Graph,
    Tensor,
    _boundary,
    _is_recording,
    _record_cancel,
    _record_finish,
    _record_start,
    empty,
    is_grad_enabled,
)
from . import log, tree, watch

#: The most graphs that a function keeps. Those of the arguments that were passed least recently are dropped first.
KEPT = 256

P = ParamSpec("P")
R = TypeVar("R")

#: A function that was recorded so many times for the same kind of arguments runs without a graph.
MOST = 16


class _Example:
    """The arguments of a call, without the elements of tensors."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: tuple[Tensor, ...]) -> None:
        self._kinds = [(t.shape, t.dtype) for t in tensors]
        metas = [empty(shape, dtype=dtype, device="meta") for shape, dtype in self._kinds]
        self._value = tree.replaced((args, kwargs), iter(metas))

    def replaced(self, make: Callable[[tuple[int, ...], DType], Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns the arguments with tensors that `make` returns for each shape and dtype."""
        args, kwargs = tree.replaced(self._value, iter([make(shape, dtype) for shape, dtype in self._kinds]))
        return args, kwargs


#: The function and the example from which each graph was recorded.
ORIGINS: weakref.WeakKeyDictionary[Graph, tuple[weakref.ref[Jitted[..., Any]], _Example]] = weakref.WeakKeyDictionary()


class _Entry:
    """A graph, and what a call needs besides it."""

    def __init__(
        self,
        graph: Graph,
        rebuild: tree.Rebuild,
        numbers: list[runs.Numbers],
        state: watch.State,
        objects: list[Any],
        example: _Example,
    ) -> None:
        self.graph = graph
        self.example = example
        self._rebuild = rebuild
        #: Functions that compute the numbers of each run.
        self._numbers = numbers
        #: The Python state that the function refers to, and the arguments that are part of it.
        self.state = state
        self._objects = objects

    def is_valid_for(self, function: Callable[..., Any], tensors: tuple[Tensor, ...]) -> bool:
        """Whether the graph computes what the function computes for these arguments."""
        if not self.graph._matches(tensors):
            return False
        if self.state.guard.holds():
            return True
        state = watch.State(function, self._objects)
        if state != self.state:
            return False
        self.state = state
        return True

    def try_to_run(self, tensors: tuple[Tensor, ...]) -> list[Tensor] | None:
        """Runs the graph if it is easy to see that it is valid."""
        return None if self._numbers else self.graph._try(tensors, self.state.guard)

    def run(self, tensors: tuple[Tensor, ...]) -> list[Tensor]:
        """Runs the graph."""
        return self.graph._run(tensors, [number for function in self._numbers for number in function()])

    def rebuilt(self, results: list[Tensor]) -> Any:
        """Returns the result of the function."""
        return results[0] if self._rebuild is next else self._rebuild(iter(results))


class _Kind:
    """The graphs for arguments of the same structure, plain values, shapes and dtypes."""

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.recordings = 0


class Jitted(watch.Watched, Generic[P, R]):
    """A function under `mt.jit`. `graphs` are the graphs that were recorded."""

    def __init__(self, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        #: The kinds of arguments, the least recent first.
        self._kinds: dict[Hashable, _Kind] = {}
        #: The last entry for each structure of arguments. It is found without a look at shapes.
        self._last: dict[Hashable, _Entry] = {}

    def watched(self) -> dict[str, Any]:
        return {"function": self._function}

    @property
    def graphs(self) -> list[Graph]:
        """The graphs that were recorded, one for each kind of arguments."""
        return [entry.graph for entry in self.entries]

    @property
    def entries(self) -> list[_Entry]:
        """The graphs, with what their calls need."""
        return [entry for kind in list(self._kinds.values()) for entry in kind.entries]

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        bound: Any = self
        return self if instance is None else functools.partial(bound, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if _is_recording():
            return self._function(*args, **kwargs)
        tensors: tuple[Any, ...] = args
        key: tuple[Hashable, ...] = (len(args),)
        if kwargs or not _are_tensors(args):
            flat: list[Tensor] = []
            parts: list[Hashable] = []
            tree.flatten((args, kwargs), flat, parts)
            tensors, key = tuple(flat), tuple(parts)
        last = self._last.get(key)
        if last is not None and (results := last.try_to_run(tensors)) is not None:
            return last.rebuilt(results)  # type: ignore[no-any-return]
        if any(t.device == "meta" for t in tensors):
            # There is nothing to compute.
            return self._function(*args, **kwargs)
        # A function may have graphs for as many shapes and dtypes as it likes.
        place = (key, tuple((t.shape, t.dtype) for t in tensors))
        # It becomes the most recent one.
        kind = self._kinds[place] = self._kinds.pop(place, _Kind())
        for entry in kind.entries:
            if entry.is_valid_for(self._function, tensors):
                if not entry.graph._is_stale():
                    self._last[key] = entry
                    return entry.rebuilt(entry.run(tensors))  # type: ignore[no-any-return]
                kind.entries = [other for other in kind.entries if other is not entry]
                break
        objects = [part.value for part in key if isinstance(part, tree.Same)]
        state = watch.State(self._function, objects)
        kind.recordings += 1
        if kind.recordings > MOST:
            if kind.recordings == MOST + 1:
                self._warn(state, kind.entries)
            return self._function(*args, **kwargs)
        try:
            result, graph, rebuild, numbers, is_kept = self._record(args, kwargs, tensors, state)
        except BaseException:
            kind.recordings -= 1
            raise
        if is_kept:
            example = _Example(args, kwargs, tensors)
            ORIGINS[graph] = weakref.ref(self), example
            self._last[key] = entry = _Entry(graph, rebuild, numbers, state, objects, example)
            kind.entries.append(entry)
            self._drop_oldest()
        return result  # type: ignore[no-any-return]

    def _drop_oldest(self) -> None:
        """Drops graphs beyond those that are kept."""
        # Another thread may do this, too.
        for place in list(self._kinds):
            if len(self.graphs) <= KEPT:
                break
            dropped = self._kinds.pop(place, _Kind()).entries
            for key in [key for key, last in list(self._last.items()) if last in dropped]:
                self._last.pop(key, None)

    def _record(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: tuple[Tensor, ...], state: watch.State
    ) -> tuple[Any, Graph, tree.Rebuild, list[runs.Numbers], bool]:
        # The history of an argument is not part of the graph.
        inner = [_boundary(t) if t.requires_grad and not t.is_leaf and is_grad_enabled() else t for t in tensors]
        is_same = all(a is b for a, b in zip(inner, tensors, strict=True))
        inner_args, inner_kwargs = (args, kwargs) if is_same else tree.replaced((args, kwargs), iter(inner))
        before = _flattened(inner_args, inner_kwargs)
        watched = tuple(t for ref in state.tensors if (t := ref()) is not None)
        _record_start(tuple(inner))
        runs.current.recording = recording = runs.Recording()
        try:
            result = self._function(*inner_args, **inner_kwargs)
            if not _is_equal(before, _flattened(inner_args, inner_kwargs)):
                raise RuntimeError(
                    "mt.jit: the function changes a list or dict that is an argument, which its graph cannot repeat; "
                    "return the new values instead"
                )
            outputs: list[Tensor] = []
            rebuild = tree.rebuilder(result, outputs)
            graph, results = _record_finish(tensors, tuple(outputs), watched)
            log.recorded(self._function, graph)
        finally:
            _record_cancel()
            runs.current.recording = None
        return rebuild(iter(results)), graph, rebuild, recording.functions, recording.is_kept

    def _warn(self, state: watch.State, entries: list[_Entry]) -> None:
        before = entries[-1].state.values if entries else state.values
        changed = [place for place in state.values if state.values[place] != before.get(place)]
        what = f"{changed[0]} changes" if changed else "it depends on what changes in each call"
        warnings.warn(
            f"mt.jit: {self._function!r} was recorded {MOST} times for the same kind of arguments, because {what}; it "
            "now runs without a graph. Pass what changes as a tensor",
            RuntimeWarning,
            stacklevel=3,
        )


def _flattened(args: Any, kwargs: Any) -> tuple[list[Tensor], list[Hashable]]:
    tensors: list[Tensor] = []
    parts: list[Hashable] = []
    tree.flatten((args, kwargs), tensors, parts)
    return tensors, parts


def _is_equal(a: tuple[list[Tensor], list[Hashable]], b: tuple[list[Tensor], list[Hashable]]) -> bool:
    return a[1] == b[1] and all(x is y for x, y in zip(a[0], b[0], strict=True))


def _are_tensors(args: tuple[Any, ...]) -> bool:
    for arg in args:  # noqa: SIM110 - a generator takes twice the time
        if type(arg) is not Tensor:
            return False
    return True


def jit(function: Callable[P, R]) -> Jitted[P, R]:
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
    return Jitted(function)


def _user_position() -> str | None:
    """Returns the file and line of the code outside of this package that is running."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").split(".")[0] != "minitensor":
            return f"{frame.f_code.co_filename}, line {frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return None
