"""Computes the results of an IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import _minitensor as mt
from .. import tracing
from .error import IRError
from .meta import TensorMeta
from .native import native
from .node import OpNode
from .step import PROVIDERS, Step
from .symbols import bind
from .values import Kind, constant, kind_of, to_kind, to_minitensor, to_torch

if TYPE_CHECKING:
    from .graph import IR

__all__ = ["Coverage", "Program", "coverage"]


@dataclass(frozen=True)
class Coverage:
    """What computes the calls of an IR. Each entry is a call."""

    native: tuple[OpNode, ...]
    registered: tuple[OpNode, ...]
    fallback: tuple[OpNode, ...]

    @property
    def share(self) -> float:
        """The part of the calls that minitensor computes, from 0 to 1."""
        count = len(self.native) + len(self.registered) + len(self.fallback)
        return len(self.native) / count if count else 1.0

    def __str__(self) -> str:
        names = sorted({node.op_type for node in self.fallback})
        lines = [f"{len(self.native)} calls by minitensor, {len(self.fallback)} by PyTorch"]
        if self.registered:
            lines[0] += f", {len(self.registered)} by registered executors"
        return "\n".join(lines + [f"PyTorch: {name}" for name in names])


def coverage(ir: IR) -> Coverage:
    """Returns what computes each call."""
    ir.check()
    sources: dict[str, list[OpNode]] = {"native": [], "registered": [], "fallback": []}
    for node in ir.nodes:
        step = _offer(node)
        sources[step.source if step else "fallback"].append(node)
    return Coverage(*(tuple(sources[name]) for name in ("native", "registered", "fallback")))


def _offer(node: OpNode) -> Step | None:
    for provider in PROVIDERS:
        step = provider(node)
        if step is not None:
            return step
    return native(node)


def _step(node: OpNode) -> Step:
    step = _offer(node)
    if step is not None:
        return step
    try:
        from ..torch_ir.fallback import fallback
    except ImportError:
        raise IRError(
            f"{_where(node)}: minitensor has no such op, and PyTorch, which may have it, is not installed; install it "
            "with: pip install torch"
        ) from None
    return fallback(node)


class Program:
    """An IR with weights, prepared to run many times.

    If minitensor computes all calls, the program is one graph of `mt.jit`; `jit=False` prevents this.
    """

    def __init__(self, ir: IR, weights: Any = None, jit: bool = True) -> None:
        ir.check()
        self.ir = ir
        steps = [(node, _step(node)) for node in ir.nodes]
        given = _weights(ir, weights)
        self._kind = next((kind_of(tensor) for tensor in given.values()), "minitensor")
        symbols: dict[str, int] = {}
        _check(ir, "weight", ir.weights, given, symbols)
        # Weights that only PyTorch reads stay tensors of PyTorch.
        read = {meta.name: step.library for node, step in reversed(steps) for meta in node.inputs}
        tensors = {c.name: constant(c) for c in ir.constants}
        tensors |= {name: _convert(value, read.get(name, "minitensor")) for name, value in given.items()}
        self._calls = _Calls(ir, steps, tensors, symbols)
        bound = {name for meta in (*ir.inputs, *ir.weights) for name in map(str, meta.shape)}
        is_native = bool(steps) and all(step.source == "native" for _, step in steps)
        #: Whether the program is a graph. It is not if PyTorch computes calls, or if sizes depend on elements.
        self.is_jitted = jit and is_native and ir.symbols.keys() <= bound
        self._graph = tracing.jit(self._calls.__call__) if self.is_jitted else None

    @property
    def fallbacks(self) -> list[str]:
        """The names of the nodes that PyTorch computed in a run: minitensor lacks the op, or refused the arguments."""
        return sorted(self._calls.fallbacks)

    def __call__(self, inputs: Any) -> list[Any]:
        """Computes the results. See `IR.run`."""
        return self._run(inputs, False)

    def with_updates(self, inputs: Any) -> tuple[list[Any], dict[str, Any]]:
        """Computes the results and the new values of weights and inputs. See `IR.run_with_updates`.

        The weights of the program do not change.
        """
        found = self._run(inputs, True)
        count = len(self.ir.outputs)
        return found[:count], dict(zip(self.ir.updates, found[count:], strict=True))

    def _run(self, inputs: Any, with_updates: bool) -> list[Any]:
        ir = self.ir
        named = _named(ir, inputs)
        _check(ir, "input", ir.inputs, named, dict(self._calls.symbols))
        kind = next((kind_of(tensor) for tensor in named.values()), self._kind)
        given = [_convert(named[m.name], "minitensor") for m in ir.inputs]
        if self._graph is not None:
            try:
                return [to_kind(result, kind) for result in self._graph(given, with_updates)]
            except _Refused:
                self._graph, self.is_jitted = None, False
        results = self._calls(given, with_updates, allow_fallback=True)
        return [to_kind(result, kind) for result in results]


class _Calls:
    """The calls of an IR. Slots: `mt.jit` does not watch them for changes."""

    __slots__ = ("_steps", "_tensors", "fallbacks", "ir", "symbols")

    def __init__(
        self, ir: IR, steps: list[tuple[OpNode, Step]], tensors: dict[str, Any], symbols: dict[str, int]
    ) -> None:
        self.ir = ir
        self._tensors = tensors
        self.symbols = symbols
        self.fallbacks = {node.name for node, step in steps if step.source == "fallback"}
        last = {meta.name: i for i, (node, _) in enumerate(steps) for meta in node.inputs}
        kept = {meta.name for meta in ir.outputs} | {*ir.updates.values()} | tensors.keys()
        results = {meta.name for meta in ir.inputs} | {meta.name for node, _ in steps for meta in node.outputs}
        unused: list[list[str]] = [[] for _ in steps]
        for i, (node, _) in enumerate(steps):
            for meta in node.outputs:
                last.setdefault(meta.name, i)
        for name, i in last.items():
            if name in results and name not in kept:
                unused[i].append(name)
        #: Each with the results that no later call reads.
        self._steps = [(node, step, names) for (node, step), names in zip(steps, unused, strict=True)]

    def __call__(self, inputs: list[Any], with_updates: bool = False, allow_fallback: bool = False) -> list[Any]:
        """Returns the results, and then the new values of weights and inputs if these are wanted."""
        tensors = dict(self._tensors)
        symbols = dict(self.symbols)
        for meta, tensor in zip(self.ir.inputs, inputs, strict=True):
            bind(meta.shape, tuple(tensor.shape), symbols)
            tensors[meta.name] = tensor
        for node, step, unused in self._steps:
            for meta, result in zip(
                node.outputs, self._results(node, step, tensors, symbols, allow_fallback), strict=True
            ):
                tensors[meta.name] = result
            for name in unused:
                del tensors[name]
        names = [meta.name for meta in self.ir.outputs]
        return [tensors[name] for name in (*names, *(self.ir.updates.values() if with_updates else ()))]

    def _results(
        self, node: OpNode, step: Step, tensors: dict[str, Any], symbols: dict[str, int], allow_fallback: bool
    ) -> Sequence[Any]:
        try:
            return _computed(node, step, tensors, symbols)
        except IRError as refusal:
            if step.source != "native" or (other := _fallback(node)) is None:
                raise
            if not allow_fallback:
                raise _Refused from refusal
            results = _computed(node, other, tensors, symbols)
        self.fallbacks.add(node.name)
        return results


class _Refused(Exception):
    """An op of minitensor does not take the arguments of a call, such as tensors of bools, but that of PyTorch may."""


def _fallback(node: OpNode) -> Step | None:
    """Returns how PyTorch computes a call; None if it does not."""
    if not node.op_type.startswith("aten."):
        return None
    try:
        from ..torch_ir.fallback import fallback
    except ImportError:
        return None
    return fallback(node)


def _computed(node: OpNode, step: Step, tensors: dict[str, Any], symbols: dict[str, int]) -> Sequence[Any]:
    try:
        given = [_convert(tensors[meta.name], step.library) for meta in node.inputs]
        results = step.compute(given, symbols)
    except IRError as error:
        raise IRError(f"{_where(node)}: {error}") from error
    except Exception as error:
        raise IRError(f"{_where(node)} failed: {type(error).__name__}: {error}") from error
    if not isinstance(results, (list, tuple)):
        if step.source == "registered":
            raise IRError(f"{_where(node)}: the executor returned a {type(results).__name__}; return a list of tensors")
        results = [results]
    if len(results) != len(node.outputs):
        raise IRError(f"{_where(node)} has {len(results)} results, but the IR has {len(node.outputs)}")
    for meta, result in zip(node.outputs, results, strict=True):
        if not hasattr(result, "dtype"):
            raise IRError(f"{_where(node)}: a result is a {type(result).__name__}, expected a tensor")
        shape, dtype = tuple(result.shape), dtype_name(result)
        if dtype != meta.dtype or not bind(meta.shape, shape, symbols):
            raise IRError(f"{_where(node)}: the result is {dtype} {shape}, but the IR has {meta}")
    checked: Sequence[Any] = results
    return checked


def _where(node: OpNode) -> str:
    return f"node '{node.name}' ({node.op_type})"


def _convert(value: Any, library: Kind) -> Any:
    if library == "torch":
        return to_torch(value)
    return value if isinstance(value, mt.Tensor) else to_minitensor(value)


def dtype_name(tensor: Any) -> str:
    """Returns the name of the dtype of a tensor of any library."""
    dtype = tensor.dtype
    return getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]


def _named(ir: IR, inputs: Any) -> dict[str, Any]:
    if isinstance(inputs, Mapping):
        return dict(inputs)
    if hasattr(inputs, "dtype"):
        inputs = (inputs,)
    flat = list(_leaves(inputs))
    if len(flat) != len(ir.inputs):
        names = ", ".join(meta.name for meta in ir.inputs)
        raise IRError(f"the IR {ir.name!r} has {len(ir.inputs)} inputs ({names}), got {len(flat)}")
    return {meta.name: tensor for meta, tensor in zip(ir.inputs, flat, strict=True)}


def _leaves(value: Any) -> Any:
    match value:
        case list() | tuple():
            for item in value:
                yield from _leaves(item)
        case dict():
            for item in value.values():
                yield from _leaves(item)
        case None:
            pass
        case _:
            yield value


def _weights(ir: IR, weights: Any) -> dict[str, Any]:
    if weights is None:
        return {}
    if not isinstance(weights, Mapping):
        if not hasattr(weights, "named_parameters"):
            raise TypeError(f"weights must be a dict by name or a module, got {type(weights).__name__}")
        # Tensors that occur twice have two names.
        weights = {
            **dict(weights.named_buffers(remove_duplicate=False)),
            **dict(weights.named_parameters(remove_duplicate=False)),
        }
    wanted = {meta.name for meta in ir.weights}
    # A state dict may have more than the graph reads, such as `num_batches_tracked`.
    return {name: tensor for name, tensor in weights.items() if name in wanted}


def _check(ir: IR, kind: str, metas: Sequence[TensorMeta], given: dict[str, Any], symbols: dict[str, int]) -> None:
    defects = []
    for name in given.keys() - {meta.name for meta in metas}:
        defects.append(f"there is no {kind} '{name}'; the IR has {', '.join(meta.name for meta in metas)}")
    for meta in metas:
        if meta.name not in given:
            defects.append(f"the {kind} {meta} is missing; pass it")
            continue
        tensor = given[meta.name]
        if not hasattr(tensor, "dtype"):
            defects.append(f"the {kind} {meta}: expected a tensor, got {type(tensor).__name__}")
        elif (dtype := dtype_name(tensor)) != meta.dtype or not bind(meta.shape, tuple(tensor.shape), symbols):
            defects.append(f"the {kind} {meta}: got {dtype} {tuple(tensor.shape)}")
    for name, (least, most) in ir.symbols.items():
        if name in symbols and not least <= symbols[name] <= (symbols[name] if most is None else most):
            defects.append(f"the size '{name}' is {symbols[name]}; expected {least} to {'∞' if most is None else most}")
    if defects:
        raise IRError(f"the IR {ir.name!r} cannot run:" + "".join(f"\n  - {defect}" for defect in defects))
