"""A Python function that is recorded as a graph of its own, while another graph is recorded."""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Callable, Container, Hashable, Sequence
from typing import Any

from .. import _runs as runs
from .._grad_mode import enable_grad, no_grad
from .._minitensor import (
    Device,
    Graph,
    Tensor,
    _Profile,
    _record_cancel,
    _record_finish,
    _record_start,
    grad,
    is_grad_enabled,
    ones_like,
    zeros,
)
from . import tree, watch
from .call import Backward, Kind, Run, apart, call, elsewhere, fresh
from .jitted import Jitted

_numbers = itertools.count()
#: The ops that take random numbers.
_DRAWS = ("random::uniform", "random::normal", "random::integers")
#: Lines of the text of a graph that begin with these words are values that a branch cannot have.
_FOREIGN = {
    "captured": "uses a tensor that is not an operand, and that mt.jit cannot replace because an object refers to it; "
    "pass the tensor as an operand",
    "key": "draws random numbers, which its gradient would have to draw again; draw them before, and pass them as an "
    "operand",
    "gradient": "reads the accumulated gradient of a tensor; use mt.grad",
}


def state_of(function: Callable[..., Any], operands: Any) -> watch.State:
    """Returns the Python state to which a function of these operands refers."""
    parts: list[Hashable] = []
    tree.flatten(operands, [], parts)
    return watch.State(function, [part.value for part in parts if isinstance(part, tree.Same)])


def captures_of(functions: Sequence[Callable[..., Any]], operands: Any, device: Device) -> list[Tensor]:
    """Returns the tensors on this device that the functions may read besides their operands."""
    found: dict[int, Tensor] = {}
    for function in functions:
        for ref in state_of(function, operands).tensors:
            if (t := ref()) is not None and t.device == device:
                found[id(t)] = t
    return list(found.values())


def detached_except(tensors: Sequence[Tensor], wrt: Container[int]) -> list[Tensor]:
    """Returns the tensors, without history except for those at these positions."""
    return [t if i in wrt else t.detach() for i, t in enumerate(tensors)]


class Branch:
    """A function of operands and captured tensors, as a graph.

    `where` names the function for messages. `arguments` makes its arguments from the operands. The first `kept`
    operands are returned, too, after the results.
    """

    def __init__(
        self,
        where: str,
        function: Callable[..., Any],
        arguments: Callable[[list[Tensor]], Sequence[Any]],
        operands: Sequence[Tensor],
        captures: Sequence[Tensor] = (),
        kept: int = 0,
        parent: Branch | None = None,
    ) -> None:
        self.where = where
        #: The branch that the function runs, with constants that this graph refers to.
        self._parent = parent
        self.graph: Graph
        #: The results, except for tensors, and the function that makes them from tensors.
        self.key: list[Hashable] = []
        self.rebuild: tree.Rebuild
        self.example: Any
        #: The tensors among the results, and then those that are kept.
        self.outputs: list[Kind]
        #: The inputs, operands first, with respect to which there is a gradient.
        self.wrt: list[int] = []
        try:
            apart(lambda: elsewhere(lambda: self._record(function, arguments, operands, captures, kept)))
        except Exception as error:
            note = f"{where} runs while mt.jit records, even if no run of the graph needs it."
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            raise

    def _record(
        self,
        function: Callable[..., Any],
        arguments: Callable[[list[Tensor]], Sequence[Any]],
        operands: Sequence[Tensor],
        captures: Sequence[Tensor],
        kept: int,
    ) -> None:
        leaves = [_leaf(t) for t in operands]
        # A history that the gradient would go through, or a layout that runs may not have.
        cells = _Cells({id(t): _leaf(t) for t in captures if not t.is_leaf or not t.is_contiguous()})
        replaced = cells.replaced(function)
        inputs = (*leaves, *(cells.leaves.get(id(t), t) for t in captures))
        needed = [i for i, t in enumerate(inputs) if t.requires_grad and is_grad_enabled()]
        given = arguments(leaves)
        with _Unchanged(self.where, function, given, inputs) as unchanged:
            _record_start(inputs)
            runs.current.recording = recording = runs.Recording()
            try:
                result = replaced(*given)
                draws = unchanged.draws()
                outputs: list[Tensor] = []
                self.rebuild = tree.rebuilder(result, outputs, self.where)
                tree.flatten(result, [], self.key)
                outputs = [fresh(t) for t in (*outputs, *leaves[:kept])]
                self.graph, results = _record_finish(inputs, tuple(outputs), ())
            finally:
                _record_cancel()
                runs.current.recording = None
        self.outputs = [Kind.of(t) for t in results]
        self.example = tree.described(result)
        self._expect_pure(cells, recording, draws)
        if needed:
            self.wrt = self._differentiable(inputs, needed)

    def _expect_pure(self, cells: _Cells, recording: runs.Recording, draws: int) -> None:
        text = self.graph.stages[0][1]
        if draws != sum(text.count(f" = {name}(") for name in _DRAWS):
            # In the Python code of an op, which is one call.
            raise RuntimeError(f"{self.where} {_FOREIGN['key']}")
        for line in text.splitlines():
            word = line.split(" ")[0]
            if (what := _FOREIGN.get(word)) is not None and (word != "captured" or self._parent is None):
                raise RuntimeError(f"{self.where} {what}")
        if not cells.are_unchanged():
            raise RuntimeError(
                f"{self.where} changes a variable of the function around it; return the new value instead"
            )
        if recording.functions or not recording.is_kept:
            raise RuntimeError(f"{self.where} uses an optimizer, which a branch cannot; call it outside of the branch")

    def _differentiable(self, inputs: Sequence[Tensor], needed: list[int]) -> list[int]:
        """Returns the inputs on which the results depend."""
        with enable_grad():
            leaves = [t.detach().requires_grad_(i in needed) for i, t in enumerate(inputs)]
            results = [t for t in self.graph._run(tuple(leaves), []) if t.requires_grad]
            if not results:
                return []
            try:
                cotangents = [ones_like(t) for t in results]
                found = grad(results, [leaves[i] for i in needed], cotangents, allow_unused=True)
            except RuntimeError:
                # There is no gradient. Asking for it is the error.
                return needed
        return [i for i, g in zip(needed, found, strict=True) if g is not None]

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Returns the results, in new memory and without history."""
        with no_grad():
            return [t.detach() for t in self.graph._run(tuple(t.detach().contiguous() for t in inputs), [])]

    def gradient(self, inputs: Sequence[Tensor], cotangents: Sequence[Tensor], wrt: Sequence[int]) -> list[Tensor]:
        """Returns the gradients with respect to these inputs. `cotangents` are those of the differentiable outputs."""
        # The cotangents and inputs are operands of a branch, so they are leaves.
        is_second = is_grad_enabled()
        with enable_grad():
            leaves = [
                t if t.requires_grad or i not in wrt else t.detach().requires_grad_() for i, t in enumerate(inputs)
            ]
            results = self.graph._run(tuple(leaves), [])
            pairs = list(zip((t for t in results if Kind.of(t).is_differentiable), cotangents, strict=True))
            pairs = [(t, cotangent) for t, cotangent in pairs if t.requires_grad]
            grads: Sequence[Tensor | None] = [None] * len(wrt)
            if pairs and wrt:
                outputs, seeds = zip(*pairs, strict=True)
                targets = [leaves[i] for i in wrt]
                grads = grad(outputs, targets, seeds, create_graph=is_second, allow_unused=True)
        return [Kind.of(inputs[i]).zeros() if g is None else g for i, g in zip(wrt, grads, strict=True)]


def _leaf(t: Tensor) -> Tensor:
    """Returns a contiguous copy without history."""
    return fresh(t.detach()).requires_grad_(t.requires_grad and is_grad_enabled())


class _Cells:
    """Functions whose closures contain other tensors."""

    def __init__(self, leaves: dict[int, Tensor]) -> None:
        #: The tensors that replace others, by the ids of these.
        self.leaves = leaves
        #: The new cells and their contents, by the ids of the others.
        self._cells: dict[int, tuple[types.CellType, Any]] = {}
        #: The new lists and dicts, and their contents.
        self._copies: list[tuple[Any, list[tuple[Any, Any]]]] = []
        #: The new values, by the ids of the others. A value that contains itself does so unchanged.
        self._known: dict[int, Any] = {}

    def replaced(self, value: Any) -> Any:
        """Returns the value with other tensors in the closures of functions, and in the containers in these."""
        if isinstance(value, Tensor):
            return self.leaves.get(id(value), value)
        if isinstance(value, functools.partial):
            keywords = {name: self.replaced(item) for name, item in value.keywords.items()}
            return functools.partial(self.replaced(value.func), *map(self.replaced, value.args), **keywords)
        if isinstance(value, Jitted):
            # It is part of the graph that is recorded.
            return self.replaced(value.watched()["function"])
        make = self._copied if type(value) in (list, tuple, dict) else self._function
        if not self.leaves or make == self._function and type(value) is not types.FunctionType:
            return value
        if id(value) not in self._known:
            self._known[id(value)] = value
            self._known[id(value)] = make(value)
        return self._known[id(value)]

    def _copied(self, value: Any) -> Any:
        before = _items(value)
        items = [(key, self.replaced(item)) for key, item in before]
        if all(a is b for (_, a), (_, b) in zip(items, before, strict=True)):
            return value
        copy = type(value)(items if type(value) is dict else (item for _, item in items))
        self._copies.append((copy, _items(copy)))
        return copy

    def _function(self, value: types.FunctionType) -> types.FunctionType:
        before: list[Any] = [*(value.__closure__ or ()), value.__defaults__, value.__kwdefaults__]
        after: list[Any] = [
            self._cell(part) if isinstance(part, types.CellType) else self.replaced(part) for part in before
        ]
        if all(a is b for a, b in zip(after, before, strict=True)):
            return value
        new = types.FunctionType(value.__code__, value.__globals__, value.__name__, after[-2], tuple(after[:-2]))
        new.__kwdefaults__ = after[-1]
        return new

    def _cell(self, cell: types.CellType) -> types.CellType:
        if id(cell) in self._cells:
            return self._cells[id(cell)][0]
        try:
            content = cell.cell_contents
        except ValueError:
            return cell
        new = self.replaced(content)
        if new is content:
            return cell
        self._cells[id(cell)] = types.CellType(new), new
        return self._cells[id(cell)][0]

    def are_unchanged(self) -> bool:
        """Whether no variable was assigned, and no list or dict changed."""
        are_assigned = any(cell.cell_contents is not content for cell, content in self._cells.values())
        return not are_assigned and all(_is_same(_items(copy), items) for copy, items in self._copies)


class _Unchanged:
    """A block that must not change Python state or tensors, because runs of its graph would not."""

    def __init__(self, where: str, function: Callable[..., Any], operands: Any, tensors: Sequence[Tensor]) -> None:
        self._where = where
        self._state: Callable[[], watch.State] = lambda: state_of(function, operands)
        self._structure: Callable[[], Any] = lambda: _structure(operands)
        self._leaves = [t for t in tensors if t.requires_grad and t.is_leaf]
        self._tensors = tensors

    def __enter__(self) -> _Unchanged:
        self._profile = _Profile()
        self._before, self._given = self._state(), self._structure()
        self._grads = [t.grad for t in self._leaves]
        # A gradient that uses the tensors: it fails if they have changed.
        with enable_grad():
            tensors = [t.detach() for t in (*self._tensors, *self._grads) if t is not None]
            one = zeros((), device=tensors[0].device if tensors else None, requires_grad=True)
            outputs = [Kind.of(one)]
            run: Run = lambda inputs: [inputs[0].detach()]  # noqa: E731
            backward: Backward = lambda inputs, _, grads: {0: grads[0]}  # noqa: E731
            self._name = f"unchanged{next(_numbers)}"
            (self._probe,) = call(self._name, run, backward, [one, *tensors], outputs)
        return self

    def draws(self) -> int:
        """Returns the number of calls on this thread that took random numbers, including those in calls."""
        self._profile.stop()
        events = self._profile.events()
        thread = next(event[3] for event in events if event[0] == f"control::{self._name}")
        return sum(event[0] in _DRAWS and event[3] == thread for event in events)

    def __exit__(self, kind: object, *_: object) -> None:
        self._profile.stop()
        if kind is not None:
            return
        if self._structure() != self._given:
            raise RuntimeError(f"{self._where} changes a list or dict that is an operand; return new values instead")
        after = self._state()
        if after != self._before:
            before, values = self._before.values, after.values
            place = next((p for p in {**values, **before} if values.get(p) != before.get(p)), "an object")
            raise RuntimeError(
                f"{self._where} changes Python state ({place}), which the graph of a branch cannot repeat; return the "
                "new value instead"
            )
        try:
            self._probe.backward()
            is_same = [_address(t.grad) for t in self._leaves] == list(map(_address, self._grads))
        except RuntimeError:
            raise RuntimeError(
                f"{self._where} changes an operand or a captured tensor in place; return the new value instead"
            ) from None
        if not is_same:
            raise RuntimeError(f"{self._where} calls backward(); use mt.grad, or return the result and call it outside")


def _items(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items() if isinstance(value, dict) else enumerate(value))


def _is_same(a: list[tuple[Any, Any]], b: list[tuple[Any, Any]]) -> bool:
    return len(a) == len(b) and all(x[0] == y[0] and x[1] is y[1] for x, y in zip(a, b, strict=True))


def _structure(value: Any) -> tuple[list[int], list[Hashable]]:
    tensors: list[Tensor] = []
    key: list[Hashable] = []
    tree.flatten(value, tensors, key)
    return list(map(id, tensors)), key


def _address(t: Tensor | None) -> int | None:
    return None if t is None else t.data_ptr()
