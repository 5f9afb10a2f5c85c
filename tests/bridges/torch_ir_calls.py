"""Calls of ATen ops, and their results by PyTorch and by an IR."""

from __future__ import annotations

import torch
from minitensor.ir import native, running
from minitensor.torch_ir.analyzer import analyze, meta_of, op_type_of
from torch import fx
from torch.utils._python_dispatch import TorchDispatchMode

from minitensor import ir


def flat(value):
    """The tensors in lists."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in value for t in flat(item)] if isinstance(value, (list, tuple)) else []


def one_call(op, args, kwargs, results):
    """Returns the IR of one call."""
    graph, tensors, placed = fx.Graph(), {}, []

    def place(value):
        if isinstance(value, torch.Tensor):
            node = graph.placeholder(f"x{len(placed)}")
            node.meta["val"] = value
            tensors[node] = meta_of(node.name, value)
            placed.append(value)
            return node
        return [place(item) for item in value] if isinstance(value, (list, tuple)) else value

    node = graph.create_node(
        "call_function", op, tuple(map(place, args)), {name: place(v) for name, v in kwargs.items()}, "call"
    )
    outputs = [meta_of(f"call.{i}", t) for i, t in enumerate(results)]
    info = analyze(node, tensors, outputs)
    call = ir.OpNode("call", op_type_of(op), info.input_metas, outputs, info.attrs)
    return ir.IR("one", list(tensors.values()), [], [call], outputs), placed


def is_memory_known(op, args):
    """Whether an op reads elements only. An IR knows no strides."""
    if not str(op).startswith("aten.as_strided"):
        return True
    return args[0].is_contiguous() and args[0].untyped_storage().nbytes() == args[0].nbytes


class Recorder(TorchDispatchMode):
    """Lists the calls of ATen ops that change no tensor."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kept = torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.clone, (args, kwargs or {}))
        results = op(*args, **(kwargs or {}))
        if not op._schema.is_mutable and is_memory_known(op, args):
            self.calls.append((op, *kept, [t.clone() for t in flat(results)]))
        return results


def computed(op, args, kwargs, results, refused):
    """Returns the node of a call, and the results of its rule.

    None if the rule leaves the call to PyTorch, or refuses it for one of the reasons `refused`. Another refusal is an
    AssertionError.
    """
    graph, tensors = one_call(op, args, kwargs, results)
    node = graph.nodes[0]
    step = native.native(node)
    if step is None or not is_memory_known(op, args):
        return None
    try:
        named = {m.name: running.to_minitensor(t) for m, t in zip(graph.inputs, tensors, strict=True)}
        return node, [running.to_torch(t) for t in running._computed(node, step, named, {})]
    except running.IRError as error:
        assert any(reason in str(error) for reason in refused), f"{node}: {error}"
        return None
