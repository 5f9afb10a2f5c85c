"""Operators that are defined by other operators: by a function of the model, or by the definition of the operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import FunctionProto, NodeProto, TensorProto, TypeProto, defs, helper

from ..._minitensor import Tensor
from .elements import DTYPES
from .error import OnnxError
from .graph import Graph, Node
from .narrow import NarrowTensor
from .values import Value, described, is_text

__all__ = ["FunctionCall", "TypedFunctionCall", "attributes_of", "body_of"]

_ELEMENT_TYPES = {name: number for number, name in DTYPES.items()}

#: The strictest of what the readers of an input take.
_STRICTNESS = ("Known", "Fixed", "Text", "Tensor", "Value")
#: How many graphs of a function are kept, for different shapes.
MAX_GRAPHS = 64


class FunctionCall:
    """A computation by the graph of a function."""

    __slots__ = ("_graph", "_kinds")

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._kinds = graph.readers()

    def kind(self, position: int) -> str:
        if position >= len(self._graph.inputs):
            return "Value"
        kinds = self._kinds.get(self._graph.inputs[position], {"Value"})
        return next(kind for kind in _STRICTNESS if kind in kinds)

    def count(self, node: Node) -> int:
        return self._graph.count

    def __call__(self, node: Node, inputs: list[Value], scope: Mapping[str, Value]) -> Sequence[Value]:
        names = self._graph.inputs
        if len(inputs) > len(names):
            raise OnnxError(f"the function has {len(names)} inputs, got {len(inputs)}")
        # Subgraphs that a function got as attributes read values of the graph around it.
        captured = {name: scope[name] for name in self._graph.captured}
        return self._graph.run(captured, [*inputs, *[None] * (len(names) - len(inputs))])


class TypedFunctionCall:
    """A computation by a function whose graph depends on the types of the inputs."""

    __slots__ = ("_graphs", "_prepared", "_proto", "_schema")

    def __init__(
        self,
        schema: defs.OpSchema,
        proto: NodeProto,
        prepared: Callable[[FunctionProto], Graph],
    ) -> None:
        self._schema = schema
        self._proto = proto
        self._prepared = prepared
        self._graphs: dict[bytes, FunctionCall] = {}

    def kind(self, position: int) -> str:
        return "Value"

    def count(self, node: Node) -> int:
        return 1

    def __call__(self, node: Node, inputs: list[Value], scope: Mapping[str, Value]) -> Sequence[Value]:
        types = [_type(value).SerializeToString() for value in inputs]
        key = b"|".join(types)
        call = self._graphs.get(key)
        if call is None:
            data = self._schema.get_context_dependent_function(self._proto.SerializeToString(), types)
            if not data:
                shown = ", ".join(map(described, inputs))
                raise OnnxError(f"minitensor has no rule for this operator, and ONNX defines it for no ({shown})")
            body = FunctionProto()
            body.ParseFromString(data)
            if len(self._graphs) == MAX_GRAPHS:
                del self._graphs[next(iter(self._graphs))]
            call = self._graphs[key] = FunctionCall(self._prepared(body))
        return call(node, inputs, scope)


def _type(value: Value) -> TypeProto:
    if isinstance(value, NarrowTensor):
        return helper.make_tensor_type_proto(TensorProto.DataType.Value(value.format.name), value.shape)
    if is_text(value):
        return helper.make_tensor_type_proto(TensorProto.STRING, value.shape)
    if isinstance(value, (Tensor, np.ndarray)):
        return helper.make_tensor_type_proto(_ELEMENT_TYPES[value.dtype.name], value.shape)
    if isinstance(value, list) and value:
        return helper.make_sequence_type_proto(_type(value[0]))
    return TypeProto()


def body_of(schema: defs.OpSchema, version: int) -> FunctionProto | None:
    """Returns the function that defines an operator in a version of its domain; None if there is none."""
    if not schema.has_function:
        return None
    # The latest body that reads no operators of a later version.
    versions = [number for number in schema.function_opset_versions if number <= version]
    data = schema.get_function_with_opset_version(max(versions)) if versions else schema.function_body
    if isinstance(data, FunctionProto):
        return data
    body = FunctionProto()
    body.ParseFromString(data)
    return body


def attributes_of(schema: defs.OpSchema, given: Mapping[str, Any], read: Callable[[Any], Any]) -> dict[str, Any]:
    """Returns the attributes of a call with the defaults of the operator."""
    defaults = {
        name: read(attribute.default_value)
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type
    }
    return defaults | dict(given)
