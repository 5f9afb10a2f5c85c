"""`Source`: what is exported, as an IR of calls of ops with its tensors and names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ... import nn
from ..._minitensor import Graph, Tensor, _tensor_from_bytes, zeros
from ...ir import IR, IRError, running
from ...ir.symbols import evaluate
from ...nn.paths import get_tensor
from ...saving import nodes, saved, sizes
from ...saving.model import LoadedModel
from ...saving.recording import Recorded, record
from ...tracing import Jitted
from ...tracing.jitted import ORIGINS
from .error import ExportError

__all__ = ["Source", "source"]


class Source(NamedTuple):
    """A graph, its weights and constants, and the names of its inputs and results."""

    ir: IR
    tensors: Mapping[str, Tensor]
    inputs: list[str]
    outputs: list[str]


def source(model: Any, examples: Any, dynamic: Any, weights: Any, training: bool) -> Source:
    """Returns what a model computes for an example."""
    if weights is not None and not isinstance(model, IR):
        raise TypeError("mt.onnx.export: weights= is for an IR; a module and a function have their own")
    try:
        if isinstance(model, LoadedModel) and examples is None:
            return _of_loaded(model, training)
        if isinstance(model, nn.Module):
            return _of_module(model, examples, dynamic, training)
        if isinstance(model, Jitted):
            return _of_function(model, saved._examples_of_function(model, examples), dynamic)
        if isinstance(model, Graph):
            origin, example = ORIGINS[model]
            function = origin()
            if function is None:
                raise ValueError("mt.save: the function of the graph no longer exists; keep it, or export it instead")
            return _of_function(function, [example.replaced(saved._zeros)], dynamic)
        if isinstance(model, IR):
            return _of_ir(model, weights)
    except (RuntimeError, ValueError, TypeError) as error:
        if "mt.save" not in str(error) or type(error) not in (RuntimeError, ValueError, TypeError):
            raise
        raise type(error)(str(error).replace("mt.save", "mt.onnx.export")) from error
    raise TypeError(
        f"mt.onnx.export takes a module, a function under mt.jit, one of its graphs or an IR, got "
        f"{type(model).__name__}; write mt.jit(function)"
    )


def _one(examples: list[saved.Example]) -> saved.Example:
    if len(examples) != 1:
        raise TypeError(
            f"mt.onnx.export takes one example, because a file of ONNX has one graph, got {len(examples)}; pass the "
            'arguments of one call as a tuple, and dynamic={0: "batch"} for other sizes'
        )
    return examples[0]


def _of_module(model: nn.Module, examples: Any, dynamic: Any, training: bool) -> Source:
    args, kwargs = _one(saved._examples(model, examples))
    tensors = saved._tensors_of(model)
    named = {name: tensor for name, (info, tensor) in tensors.items() if info.same_as is None}
    modes = {part: part.training for part in model.modules()}
    model.train(training)
    try:
        with saved._restored(named):
            recorded = saved._recorded(model, args, kwargs, named, type(model).__name__, dynamic)
    finally:
        for part, mode in modes.items():
            part.training = mode
    return _of_recorded(recorded, named, _parameters(model.forward, args, kwargs))


def _of_function(function: Jitted[..., Any], examples: list[saved.Example], dynamic: Any) -> Source:
    args, kwargs = _one(examples)
    inner = function._function
    named = saved._tensors_read(inner)
    name = getattr(function, "__name__", "function").strip("<>")
    with saved._restored(named):
        recorded = saved._recorded(inner, args, kwargs, named, name, dynamic)
    return _of_recorded(recorded, named, _parameters(inner, args, kwargs))


def _of_recorded(recorded: Recorded, named: Mapping[str, Tensor], parameters: list[str]) -> Source:
    args, kwargs = recorded.inputs["tuple"]
    inputs: dict[int, str] = {}
    for name, structure in zip(parameters, args["tuple"], strict=True):
        inputs.update(_leaves(structure, name))
    for name, structure in kwargs["dict"]:
        inputs.update(_leaves(structure, name))
    outputs = dict(_leaves(recorded.outputs, "" if "dict" in recorded.outputs else "output"))
    return Source(
        recorded.ir,
        {**named, **recorded.constants},
        [inputs[k] for k in range(len(inputs))],
        [outputs[k] for k in range(len(outputs))],
    )


def _parameters(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """The names of the positional arguments of a call."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return [f"input_{k}" for k in range(len(args))]
    names: list[str] = []
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}_{k}" for k in range(len(value))]
        elif kind is not inspect.Parameter.VAR_KEYWORD and len(names) < len(args):
            names.append(name)
    return names


def _leaves(structure: dict[str, Any], name: str) -> Iterator[tuple[int, str]]:
    """The tensors of a structure by their positions, with names such as `state_0`."""
    ((kind, part),) = structure.items()
    if kind == "tensor":
        yield part, name or "output"
    elif kind == "dict":
        for key, item in part:
            yield from _leaves(item, f"{name}_{key}" if name else str(key))
    elif kind in ("tuple", "list"):
        for k, item in enumerate(part):
            yield from _leaves(item, f"{name}_{k}" if name else str(k))


def _of_loaded(model: LoadedModel, training: bool) -> Source:
    branches = [branch for branch in model.branches if branch.training in (None, training)]
    if len(branches) != 1:
        listed = "".join(f"\n  {branch}" for branch in branches)
        raise TypeError(f"mt.onnx.export: the loaded model has {len(branches)} graphs; pass an example of one:{listed}")
    [branch] = branches
    ir = branch.ir
    tensors = {meta.name: get_tensor(model, meta.name) for meta in ir.weights}
    parameters = [f"input_{k}" for k in range(len(branch.inputs["tuple"][0]["tuple"]))]
    return _of_recorded(Recorded(ir, branch.inputs, branch.outputs, {}, []), tensors, parameters)


def _of_ir(ir: IR, weights: Any) -> Source:
    ir.check()
    if ir.updates:
        raise ExportError(
            f"mt.onnx.export: the model changes {', '.join(sorted(ir.updates))}, which a graph of ONNX cannot; extract "
            "it in evaluation mode"
        )
    if not all(n.op_type.startswith(nodes.PREFIX) or n.op_type in (nodes.KEY, nodes.DETACH) for n in ir.nodes):
        return _of_aten(ir, weights)
    tensors: dict[str, Tensor] = {}
    for meta in ir.weights:
        if weights is None or meta.name not in weights:
            raise ExportError(f"mt.onnx.export: weights= lacks the weight {meta}")
        t = tensors[meta.name] = weights[meta.name]
        if t.shape != meta.shape or t.dtype.name != meta.dtype:
            raise ExportError(
                f"mt.onnx.export: the IR has the weight {meta}, but weights= has {t.dtype.name} {t.shape}"
            )
    for constant in ir.constants:
        shape = tuple(int(size) for size in constant.meta.shape)
        tensors[constant.meta.name] = _tensor_from_bytes(constant.data, constant.meta.dtype, shape)
    metas = [*ir.weights, *(c.meta for c in ir.constants)]
    whole = IR(ir.name, ir.inputs, metas, ir.nodes, ir.outputs, symbols=ir.symbols)
    return Source(whole, tensors, [m.name for m in ir.inputs], _result_names(ir))


def _result_names(ir: IR) -> list[str]:
    return ["output"] if len(ir.outputs) == 1 else [f"output_{k}" for k in range(len(ir.outputs))]


def _of_aten(ir: IR, weights: Any) -> Source:
    """An IR of calls of ATen, by the ops of minitensor that its rules call."""
    others = running.coverage(ir).fallback
    if others:
        listed = "".join(f"\n  node '{node.name}': {node.op_type}" for node in others)
        raise ExportError(
            "mt.onnx.export: minitensor has no rules for some calls of the IR; export this model with "
            f"torch.onnx.export:{listed}"
        )
    try:
        calls = running.Program(ir, weights, jit=False)._calls
    except IRError as error:
        raise ExportError(f"mt.onnx.export: {error}") from error
    named = {name: t for name, t in calls._tensors.items() if isinstance(t, Tensor)}

    def at(values: Mapping[str, int]) -> Recorded:
        examples = [zeros(tuple(evaluate(n, values) for n in m.shape), dtype=m.dtype) for m in ir.inputs]
        return record(lambda *tensors: tuple(calls(list(tensors))), tuple(examples), {}, named, ir.name)

    if not ir.symbols:
        recorded = at({})
    elif len(ir.symbols) > sizes.MOST:
        raise ExportError(
            f"mt.onnx.export: the IR has {len(ir.symbols)} symbols, but at most {sizes.MOST} are supported; extract it "
            "with fixed sizes"
        )
    else:
        recorded = sizes.generalized(
            at, {name: max(least, 2) + k for k, (name, (least, _)) in enumerate(ir.symbols.items())}
        )
    return Source(recorded.ir, {**named, **recorded.constants}, [m.name for m in ir.inputs], _result_names(ir))
