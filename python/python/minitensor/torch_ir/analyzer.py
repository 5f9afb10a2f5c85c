"""What a call in a graph of PyTorch means: its tensors, and its attributes by the names of the schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from ..ir import Input, IRError, Sym, TensorMeta

__all__ = ["NodeInfo", "analyze", "meta_of", "op_type_of"]

#: What an IR does not say: where tensors are, and how their memory is arranged.
_PLACES = ("device", "layout", "memory_format", "pin_memory", "generator")


@dataclass
class NodeInfo:
    """A call in a graph of PyTorch."""

    #: The name of the node, such as `conv2d_1`.
    name: str
    #: The kind of the node, `call_function`.
    op: str
    #: The op, such as `torch.ops.aten.conv2d.default`.
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    #: The tensors, in the order of the schema.
    input_metas: list[TensorMeta]
    output_metas: list[TensorMeta]
    #: The other arguments by name, with the defaults of the schema. Tensors in lists are `Input`s.
    attrs: dict[str, Any] = field(default_factory=dict)


def op_type_of(target: Any) -> str:
    """Returns the name of an op. An op of minitensor has the name of `mt.ops`."""
    if not isinstance(target, torch._ops.OpOverload):
        return getattr(target, "__name__", str(target))
    if target.namespace == "minitensor":
        return f"minitensor.{target._schema.name.partition('::')[2].replace('__', '::')}"
    return str(target)


def size_of(size: Any) -> int | str:
    """Returns a size: a number, or an expression."""
    return size if isinstance(size, int) else _number(size)


def _number(value: Any) -> Any:
    """Returns a symbolic number of PyTorch as a number, or as the text of an expression."""
    expression = value.node.expr
    if expression.is_number:
        return int(expression) if expression.is_integer else float(expression)
    return str(expression)


def meta_of(name: str, tensor: torch.Tensor) -> TensorMeta:
    """Returns the name, shape and dtype of a tensor."""
    if tensor.layout is not torch.strided:
        raise IRError(f"the tensor '{name}' has the layout {tensor.layout}; convert it with .to_dense()")
    return TensorMeta(name, tuple(map(size_of, tensor.shape)), str(tensor.dtype).removeprefix("torch."))


def analyze(node: fx.Node, tensors: dict[fx.Node, Any], output_metas: list[TensorMeta]) -> NodeInfo:
    """Returns the description of a call. `tensors` has the metas of the nodes before it."""
    reader = _Reader(node, tensors)
    attrs: dict[str, Any] = {}
    for name, value in _arguments(node):
        if isinstance(value, fx.Node) and isinstance(tensors.get(value), TensorMeta):
            reader.add(value)
        else:
            attrs[name] = None if name in _PLACES else reader.attribute(name, value)
    return NodeInfo(
        node.name, node.op, node.target, tuple(node.args), dict(node.kwargs), reader.inputs, output_metas, attrs
    )


def _arguments(node: fx.Node) -> Iterator[tuple[str, Any]]:
    """Yields the arguments by name, in the order of the schema, with defaults."""
    schema = node.target._schema
    for i, argument in enumerate(schema.arguments):
        if i < len(node.args) and not argument.kwarg_only:
            yield argument.name, node.args[i]
        elif argument.name in node.kwargs:
            yield argument.name, node.kwargs[argument.name]
        elif argument.has_default_value():
            yield argument.name, argument.default_value


class _Reader:
    """Reads the arguments of a call."""

    def __init__(self, node: fx.Node, tensors: dict[fx.Node, Any]) -> None:
        self._node = node
        self._tensors = tensors
        self.inputs: list[TensorMeta] = []

    def add(self, node: fx.Node) -> Input:
        """Appends a tensor to the inputs."""
        self.inputs.append(self._tensors[node])
        return Input(len(self.inputs) - 1)

    def attribute(self, name: str, value: Any) -> Any:
        """Returns a value that an IR can have."""
        if isinstance(value, fx.Node):
            found = self._tensors.get(value)
            return self.add(value) if isinstance(found, TensorMeta) else self.attribute(name, value.meta.get("val"))
        if isinstance(value, (list, tuple)):
            return [self.attribute(name, item) for item in value]
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            number = _number(value)
            return Sym(number) if isinstance(number, str) else number
        if isinstance(value, torch.dtype):
            return str(value).removeprefix("torch.")
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            return value
        raise IRError(
            f"node '{self._node.name}' ({op_type_of(self._node.target)}): the argument '{name}' is a "
            f"{type(value).__name__}, which an IR cannot have; register a conversion with register_op"
        )
