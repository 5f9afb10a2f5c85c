"""A `ModelProto` becomes a graph that runs. All problems are collected, and reported at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto, defs

from . import rule
from .elements import DTYPES, array_of, dense, dtype_of, type_name
from .error import OnnxError
from .functions import FunctionCall, TypedFunctionCall, attributes_of, body_of
from .graph import Computation, Graph, Node, Step
from .known import MAX_SIZE
from .rule_call import RuleCall
from .values import Value, from_array, may_be_known

__all__ = ["Prepared", "Variable", "prepare"]

#: How deep functions may call functions.
MAX_CALLS = 32
#: How many nodes a run may have.
MAX_NODES = 1_000_000
#: The attributes that a rule may ignore: they do not change results.
_WITHOUT_EFFECT = {"consumed_inputs", "seed", "chunk_size", "locale"}


@dataclass(frozen=True)
class Variable:
    """An input or output of a model. A size is a number, a name, or None. `shape` is None if the rank is not known."""

    name: str
    #: The name of the dtype, or of the kind of value, such as `sequence`.
    dtype: str
    shape: tuple[int | str | None, ...] | None

    def __str__(self) -> str:
        sizes = "…" if self.shape is None else ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.name}: {self.dtype} ({sizes})"


@dataclass(frozen=True)
class Prepared:
    """A model that runs."""

    name: str
    graph: Graph
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    #: The initializers of the graph.
    arrays: dict[str, npt.NDArray[Any]] = field(repr=False)


def prepare(model: ModelProto, folder: Path | None) -> Prepared:
    """Prepares a model. `folder` has the files with its tensors."""
    preparation = _Preparation(model, folder)
    opsets = _versions(model.opset_import)
    arrays: dict[str, npt.NDArray[Any]] = {}
    for tensor in model.graph.initializer:
        preparation.add(arrays, tensor.name, lambda tensor=tensor: array_of(tensor, folder))
    for sparse in model.graph.sparse_initializer:
        preparation.add(arrays, sparse.values.name, lambda sparse=sparse: dense(sparse, folder))
    graph = preparation.graph(model.graph, opsets, {}, (), {})
    preparation.report()
    if graph.count > MAX_NODES:
        raise OnnxError(
            f"a run of the model has {graph.count} nodes, because its functions call functions; expected at most "
            f"{MAX_NODES}; call each function once where its result is the same"
        )
    inputs = tuple(map(_variable, model.graph.input))
    defined = {variable.name for variable in inputs} | arrays.keys()
    missing = sorted(graph.captured - defined)
    if missing:
        raise OnnxError(f"the model reads {', '.join(map(repr, missing))}, which neither a node nor a weight defines")
    return Prepared(model.graph.name, graph, inputs, tuple(map(_variable, model.graph.output)), arrays)


def _versions(imports: Any) -> dict[str, int]:
    return {_domain(opset.domain): opset.version for opset in imports}


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _variable(info: ValueInfoProto) -> Variable:
    kind = info.type.WhichOneof("value") or ""
    if kind != "tensor_type":
        return Variable(info.name, kind.removesuffix("_type") or "value", None)
    tensor = info.type.tensor_type
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(
            int(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or None for dim in tensor.shape.dim
        )
    try:
        dtype = dtype_of(tensor.elem_type)
    except OnnxError:
        dtype = type_name(tensor.elem_type)
    return Variable(info.name, dtype, shape)


class _Preparation:
    """Prepares the graphs of a model."""

    def __init__(self, model: ModelProto, folder: Path | None) -> None:
        self._folder = folder
        # Copies: a part of a message keeps all of it in memory.
        self._functions = {(_domain(f.domain), f.name, f.overload): _copy(f) for f in model.functions}
        self._problems: dict[str, None] = {}
        #: The function calls, by function, opsets and attributes, each with the attributes.
        self._bodies: dict[Any, tuple[FunctionCall, Mapping[str, Any]]] = {}

    def report(self) -> None:
        """Raises OnnxError if there were problems."""
        if self._problems:
            raise OnnxError("the model cannot be loaded:" + "".join(f"\n  - {text}" for text in self._problems))

    def add(self, found: dict[str, Any], name: str, read: Any) -> None:
        """Adds what a function reads, or the problem that it reports."""
        try:
            found[name] = read()
        except OnnxError as error:
            self._problems[str(error)] = None

    def graph(
        self,
        proto: GraphProto,
        opsets: Mapping[str, int],
        references: Mapping[str, Any],
        calls: tuple[str, ...],
        constants: Mapping[str, Value],
    ) -> Graph:
        """Prepares a graph. `references` are the attributes of the function around it, `calls` the functions."""
        steps = self._steps(proto.node, opsets, references, calls)
        inputs = [info.name for info in proto.input]
        outputs = [_variable(info) for info in proto.output]
        types = [(v.dtype if v.dtype in DTYPES.values() else None, v.shape) for v in outputs]
        return Graph(proto.name, inputs, [v.name for v in outputs], constants, steps, types)

    def _constants(self, proto: GraphProto) -> dict[str, Value]:
        """Returns the initializers of a subgraph."""
        found: dict[str, Value] = {}
        for tensor in proto.initializer:
            self.add(found, tensor.name, lambda tensor=tensor: constant(array_of(tensor, self._folder)))
        for sparse in proto.sparse_initializer:
            self.add(found, sparse.values.name, lambda sparse=sparse: constant(dense(sparse, self._folder)))
        return found

    def _steps(
        self,
        nodes: Sequence[NodeProto],
        opsets: Mapping[str, int],
        references: Mapping[str, Any],
        calls: tuple[str, ...],
    ) -> list[Step]:
        steps = []
        for proto in nodes:
            try:
                steps.append(self._step(proto, opsets, references, calls))
            except OnnxError as error:
                self._problems[str(error)] = None
        return steps

    def _step(
        self, proto: NodeProto, opsets: Mapping[str, int], references: Mapping[str, Any], calls: tuple[str, ...]
    ) -> Step:
        domain = _domain(proto.domain)
        attributes: dict[str, Any] = {}
        node = Node(proto.name, domain, proto.op_type, opsets.get(domain, 1), proto.input, proto.output, attributes)
        try:
            for attribute in proto.attribute:
                if attribute.ref_attr_name:
                    if attribute.ref_attr_name in references:
                        attributes[attribute.name] = references[attribute.ref_attr_name]
                else:
                    attributes[attribute.name] = self._attribute(attribute, opsets, references, calls)
            return Step(node, self._computation(proto, node, opsets, calls))
        except OnnxError as error:
            raise OnnxError(f"{node}: {error}") from error.__cause__

    def _computation(
        self, proto: NodeProto, node: Node, opsets: Mapping[str, int], calls: tuple[str, ...]
    ) -> Computation:
        function = self._functions.get((node.domain, node.op, proto.overload))
        if function is not None:
            return self._call(function, node.attributes, {**opsets, **_versions(function.opset_import)}, calls)
        found = rule.find(node.domain, node.op, node.version)
        if found is not None:
            unknown = node.attributes.keys() - found.attributes.keys() - _WITHOUT_EFFECT
            if unknown:
                raise OnnxError(f"the attribute {', '.join(map(repr, sorted(unknown)))} is not supported")
            for name in node.attributes.keys() - found.attributes.keys():
                del node.attributes[name]
            return RuleCall(found, node)
        schema = _schema(node)
        if schema is not None:
            body = body_of(schema, node.version)
            if body is not None:
                given = attributes_of(schema, node.attributes, lambda a: self._attribute(a, opsets, {}, calls))
                return self._call(body, given, {**opsets, **_versions(body.opset_import)}, calls)
            if schema.has_context_dependent_function:
                own = _copy(proto)
                return TypedFunctionCall(schema, own, lambda body: self._typed(body, own, schema, opsets, calls))
        raise OnnxError(_why(node, schema))

    def _typed(
        self,
        body: FunctionProto,
        proto: NodeProto,
        schema: defs.OpSchema,
        opsets: Mapping[str, int],
        calls: tuple[str, ...],
    ) -> Graph:
        attributes = {a.name: self._attribute(a, opsets, {}, calls) for a in proto.attribute}
        given = attributes_of(schema, attributes, lambda a: self._attribute(a, opsets, {}, calls))
        graph = self._body(body, given, {**opsets, **_versions(body.opset_import)}, calls)
        self.report()
        return graph

    def _call(
        self, function: FunctionProto, given: Mapping[str, Any], opsets: Mapping[str, int], calls: tuple[str, ...]
    ) -> FunctionCall:
        name = f"{function.domain}.{function.name}:{function.overload}"
        if name in calls or len(calls) >= MAX_CALLS:
            raise OnnxError(f"the function calls itself, or functions are nested deeper than {MAX_CALLS}")
        # Calls with equal attributes share the graph: functions that call each other twice do not grow without limit.
        key = (name, tuple(sorted(opsets.items())), tuple(sorted((k, _identity(v)) for k, v in given.items())))
        if key in self._bodies:
            return self._bodies[key][0]
        graph = self._body(function, given, opsets, (*calls, name))
        if graph.captured and not self._problems:
            unknown = ", ".join(map(repr, sorted(graph.captured)))
            raise OnnxError(f"the function '{name}' reads {unknown}, which it does not define")
        call = FunctionCall(graph)
        # The attributes are kept, so that their identities remain theirs.
        self._bodies[key] = call, given
        return call

    def _body(
        self, function: FunctionProto, given: Mapping[str, Any], opsets: Mapping[str, int], calls: tuple[str, ...]
    ) -> Graph:
        defaults = {a.name: self._attribute(a, opsets, {}, calls) for a in function.attribute_proto}
        steps = self._steps(function.node, opsets, defaults | dict(given), calls)
        return Graph(function.name, function.input, function.output, {}, steps)

    def _attribute(
        self,
        attribute: AttributeProto,
        opsets: Mapping[str, int],
        references: Mapping[str, Any],
        calls: tuple[str, ...],
    ) -> Any:
        match attribute.type:
            case AttributeProto.FLOAT:
                return attribute.f
            case AttributeProto.INT:
                return attribute.i
            case AttributeProto.STRING:
                return attribute.s.decode(errors="replace")
            case AttributeProto.FLOATS:
                return list(attribute.floats)
            case AttributeProto.INTS:
                return list(attribute.ints)
            case AttributeProto.STRINGS:
                return [item.decode(errors="replace") for item in attribute.strings]
            case AttributeProto.TENSOR:
                return constant(array_of(attribute.t, self._folder))
            case AttributeProto.SPARSE_TENSOR:
                return constant(dense(attribute.sparse_tensor, self._folder))
            case AttributeProto.GRAPH:
                return self.graph(attribute.g, opsets, references, calls, self._constants(attribute.g))
            case AttributeProto.TYPE_PROTO:
                return _copy(attribute.tp)
        kind = AttributeProto.AttributeType.Name(attribute.type)
        raise OnnxError(f"the attribute '{attribute.name}' is of type {kind}, which is not supported")


def _identity(value: Any) -> str:
    """A text that is the same for equal attributes that are numbers or strings, or for one object."""
    return repr(value) if isinstance(value, (int, float, str, list)) else f"object {id(value)}"


def _copy(message: Any) -> Any:
    found = type(message)()
    found.CopyFrom(message)
    return found


def constant(array: npt.NDArray[Any]) -> Value:
    """Returns the value of a constant. Small ones remain known."""
    return array if array.size <= MAX_SIZE and may_be_known(array) else from_array(array)


def _schema(node: Node) -> defs.OpSchema | None:
    try:
        return defs.get_schema(node.op, node.version, node.domain)
    # A name that is not UTF-8 is no text for `onnx`.
    except (defs.SchemaError, TypeError):
        return None


def _why(node: Node, schema: defs.OpSchema | None) -> str:
    """Why a node cannot be computed, and what to do."""
    first = rule.first_version(node.domain, node.op)
    if first is not None:
        return (
            f"opset {node.version} is older than the rules of this operator, which begin at {first}; convert the model "
            "with onnx.version_converter.convert_version(model, 13)"
        )
    if schema is not None:
        return "minitensor has no rule for this operator; export the model without it"
    what = f"domain '{node.domain}'" if node.domain else f"opset {node.version}"
    return f"{what} has no such operator that minitensor knows; export the model to standard operators"
