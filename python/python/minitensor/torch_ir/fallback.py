"""Calls that PyTorch computes, through the schema of the op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..ir import IRError, OpNode
from ..ir.step import Step, bound

__all__ = ["fallback", "find_op"]


#: Ops that read or write files, or print.
_EFFECTS = ("aten::from_file", "aten::_print", "aten::warn", "aten::save")


def find_op(op_type: str) -> Any:
    """Returns the op of PyTorch, such as `torch.ops.aten.add.Tensor` for `aten.add.Tensor`; None if there is none."""
    namespace, _, rest = op_type.partition(".")
    name, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace, None), name, None) if name else None
    return getattr(packet, overload or "default", None)


def fallback(node: OpNode) -> Step:
    """Returns how PyTorch computes a call."""
    op = find_op(node.op_type)
    if not isinstance(op, torch._ops.OpOverload):
        raise IRError(
            f"node '{node.name}': neither minitensor nor PyTorch has an op '{node.op_type}'; import the package that "
            "registers it, or register an executor with minitensor.torch_ir.ops.register_executor"
        )
    schema = op._schema
    if schema.name in _EFFECTS:
        raise IRError(f"node '{node.name}': {node.op_type} has effects outside of the graph, which an IR cannot have")
    if schema.is_mutable:
        raise IRError(f"node '{node.name}': {node.op_type} changes a tensor in place; extract the model again")
    names = [argument.name for argument in schema.arguments]
    unknown = node.attrs.keys() - set(names)
    if unknown:
        raise IRError(f"node '{node.name}': {node.op_type} has no argument '{min(unknown)}'; it has {', '.join(names)}")

    def compute(inputs: Sequence[Any], symbols: Mapping[str, int]) -> list[Any]:
        given = bound(node, names, inputs, symbols)
        # None is the default of what an IR does not say, such as the arrangement of memory.
        named = {
            a.name: _argument(a, given[a.name])
            for a in schema.arguments
            if a.name in given and not (given[a.name] is None and a.has_default_value())
        }
        positional = []
        for argument in schema.arguments:
            # Arguments after one that is left out have names.
            if argument.kwarg_only or argument.name not in named:
                break
            positional.append(named.pop(argument.name))
        result = op(*positional, **named)
        results = result if isinstance(result, (list, tuple)) else [result]
        return [tensor for tensor in results if tensor is not None]

    return Step("fallback", "torch", compute)


def _argument(argument: Any, value: Any) -> Any:
    """Returns a value of the type of the schema: dtypes are texts in an IR."""
    if isinstance(value, str) and "ScalarType" in str(argument.real_type):
        return getattr(torch, value)
    return value
