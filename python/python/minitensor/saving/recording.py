"""Records a function of tensors as an IR, by the ops that other processes have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .. import _minitensor
from .. import _runs as runs
from .._grad_mode import enable_grad
from .._minitensor import DType, Tensor
from ..ir import IR, Input, OpNode, TensorMeta
from ..tracing import tree
from . import nodes, structure

__all__ = ["Call", "Recorded", "record"]


class Call(NamedTuple):
    """A call of an op that is not built in: its attributes, and for each input whether it is given."""

    op: str
    attrs: dict[str, Any]
    given: list[bool]


class Recorded(NamedTuple):
    """A recorded function."""

    ir: IR
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    #: The tensors that the function made from nothing but numbers, by name.
    constants: dict[str, Tensor]
    calls: list[Call]


class _Captured(Exception):
    """The function reads a tensor that has no name yet."""

    def __init__(self, tensors: list[Tensor]) -> None:
        super().__init__()
        self.tensors = tensors


def record(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], named: dict[str, Tensor], name: str
) -> Recorded:
    """Records a call. `named` are the tensors that the function refers to; others that it reads are added."""
    while True:
        try:
            return _once(function, args, kwargs, named, name)
        except _Captured as found:
            for tensor in found.tensors:
                number = next(k for k in range(len(named) + 1) if f"captured.{k}" not in named)
                named[f"captured.{number}"] = tensor


def _once(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], named: Mapping[str, Tensor], name: str
) -> Recorded:
    given: list[Tensor] = []
    inputs = structure.written((args, kwargs), given, "an argument")
    # With a history, so that the recording shows where histories end, as after detach().
    inner = [_minitensor._boundary(t) if _is_differentiable(t) else t.detach() for t in given]
    args, kwargs = tree.replaced((args, kwargs), iter(inner))
    with enable_grad():
        _minitensor._export_start((*inner, *named.values()))
        runs.current.recording = recording = runs.Recording()
        try:
            results: list[Tensor] = []
            outputs = structure.written(function(*args, **kwargs), results, "the result")
            data = _minitensor._export_finish(tuple(results))
        finally:
            runs.current.recording = None
            _minitensor._export_cancel()
    if not recording.is_kept or recording.functions:
        raise RuntimeError(
            "mt.save: the function uses an optimizer, so it cannot be saved; save the model, and the state of the "
            "optimizer"
        )
    captured = [value for kind, value, *_ in data["values"] if kind == "captured"]
    if captured:
        for tensor in captured:
            if not tensor.is_leaf:
                raise ValueError(
                    f"mt.save: the function reads a tensor of shape {tensor.shape} that has a history and is no "
                    "argument; "
                    "compute it in the function, or detach() it"
                )
        raise _Captured(captured)
    return _Writer(data, len(inner), list(named)).recorded(name, inputs, outputs)


def _is_differentiable(t: Tensor) -> bool:
    return t.dtype.is_floating_point or t.dtype.is_complex


class _Writer:
    """Writes a recording as an IR."""

    def __init__(self, data: dict[str, Any], inputs: int, named: Sequence[str]) -> None:
        self._data = data
        self._inputs = inputs
        self._named = named
        self._values: list[tuple[str, Any, tuple[int, ...], str]] = data["values"]
        self._taken = set(named)
        self._metas: dict[int, TensorMeta] = {}
        self._nodes: list[OpNode] = []
        self._counts: Counter[str] = Counter()
        self._constants: dict[str, Tensor] = {}
        self._calls: list[Call] = []

    def recorded(self, name: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> Recorded:
        arguments = [self._meta(k, f"input{k}") for k in range(self._inputs)]
        weights = [self._define(self._inputs + k, name) for k, name in enumerate(self._named)]
        for k, (kind, value, *_) in enumerate(self._values):
            if kind == "constant":
                meta = self._meta(k, f"constant{len(self._constants)}")
                self._constants[meta.name] = value
                weights.append(meta)
            elif kind == "key":
                n, is_of_integers = value
                self._add(nodes.KEY, [], [self._meta(k, f"v{k}")], {"n": n, "is_of_integers": is_of_integers})
        for call in self._data["calls"]:
            self._call(call)
        results = [self._detached(id) if is_cut else self._metas[id] for id, is_cut in self._data["outputs"]]
        read = {meta.name for node in self._nodes for meta in node.inputs} | {meta.name for meta in results}
        weights = [meta for meta in weights if meta.name in read]
        ir = IR(name, arguments, weights, self._nodes, results)
        ir.check()
        return Recorded(ir, inputs, outputs, self._constants, self._calls)

    def _define(self, value: int, name: str) -> TensorMeta:
        _, _, shape, dtype = self._values[value]
        self._metas[value] = meta = TensorMeta(name, tuple(shape), dtype)
        return meta

    def _meta(self, value: int, name: str) -> TensorMeta:
        return self._define(value, self._free(name))

    def _free(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _add(self, op: str, inputs: list[TensorMeta], outputs: list[TensorMeta], attrs: dict[str, Any]) -> None:
        last = op.rpartition(".")[2].rpartition(":")[2]
        self._counts[last] += 1
        self._nodes.append(OpNode(f"{last}{self._counts[last]}", op, inputs, outputs, attrs))

    def _derived(self, op: str, meta: TensorMeta, dtype: str, attrs: dict[str, Any]) -> TensorMeta:
        result = TensorMeta(self._free(f"{meta.name}.{op.rpartition('.')[2]}"), meta.shape, dtype)
        self._add(op, [meta], [result], attrs)
        return result

    def _detached(self, value: int) -> TensorMeta:
        meta = self._metas[value]
        return self._derived(nodes.DETACH, meta, meta.dtype, {})

    def _call(self, call: dict[str, Any]) -> None:
        op = call["op"]
        if not call["is_registered"]:
            raise RuntimeError(f"mt.save: {_why(op)}")
        inputs: list[TensorMeta] = []
        attrs: dict[str, Any] = {}
        lists: dict[str, list[Input]] = {}
        declared = nodes.inputs(op)
        for k, arg in enumerate(call["args"]):
            name, arity = declared[min(k, len(declared) - 1)]
            if arg is None:
                attrs[name] = None
            elif arg[0] == "number":
                attrs[name] = arg[1]
            else:
                inputs.append(self._argument(op, call["is_wide"], arg[1], arg[2]))
                if arity == "variadic":
                    lists.setdefault(name, []).append(Input(len(inputs) - 1))
        if declared and declared[-1][1] == "variadic":
            attrs[declared[-1][0]] = lists.get(declared[-1][0], [])
        attributes = call["attrs"]
        attrs |= {name: _plain(value) for name, value in attributes.items()}
        results: list[int | None] = call["results"]
        wanted = [k for k, value in enumerate(results) if value is not None]
        if results and not wanted:
            # It returned one of its arguments.
            return
        if len(wanted) < len(results):
            attrs[nodes.RESULTS] = wanted
        if not call["is_built_in"]:
            self._calls.append(Call(op, attributes, [arg is not None for arg in call["args"]]))
        metas = [self._meta(value, f"v{value}") for value in results if value is not None]
        self._add(f"{nodes.PREFIX}{op}", inputs, metas, attrs)

    def _argument(self, op: str, is_wide: bool, value: int, is_detached: bool) -> TensorMeta:
        meta = self._metas[value]
        if is_detached:
            meta = self._detached(value)
        if is_wide and meta.dtype in ("float16", "bfloat16"):
            # Within an op of whole tensors, half results are stored as float32.
            meta = self._derived(f"{nodes.PREFIX}astype", meta, "float32", {"dtype": "float32"})
        return meta


def _plain(value: Any) -> Any:
    return value.name if isinstance(value, DType) else value


def _why(op: str) -> str:
    """Why a call of an op that is not registered cannot be saved, and what to do."""
    if op.startswith("control::"):
        what = op.removeprefix("control::")
        return (
            f"the function calls mt.{what}, whose branches are Python code, so it cannot be saved; use mt.where, or "
            "a Python "
            "loop with a fixed number of steps"
        )
    if op.endswith(".vjp"):
        return (
            f"the function computes a gradient (op '{op}'), so it cannot be saved; save a function that only computes "
            "results, and differentiate it after loading"
        )
    return f"the function calls op '{op}', which is no longer registered; register it again, and define the model anew"
