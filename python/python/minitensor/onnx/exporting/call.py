"""`Call`: a call of an op, as the rules see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..._definitions import Definition, define
from ..._minitensor import _infer_dtypes, _is_built_in, describe
from ...ir import Input, OpNode, Sym, TensorMeta
from ...ir.symbols import Size
from ...saving import nodes
from . import dtypes
from .builder import Builder, Value
from .error import ExportError
from .functions import DOMAIN

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Call"]


class Call:
    """A call of an op: its inputs as values, and its attributes."""

    def __init__(self, graph: Graph, node: OpNode) -> None:
        self.graph = graph
        self.node = node
        self.op = node.op_type.removeprefix(nodes.PREFIX)
        self.definition: Definition = define(self.op)
        attrs = dict(node.attrs)
        #: The results that are used; None if all are.
        self.wanted: list[int] | None = attrs.pop(nodes.RESULTS, None)
        following = iter(range(len(node.inputs)))
        #: For each input: a value, a list of values, a number, or None.
        self.inputs: list[Any] = []
        #: The names of the tensors of each input.
        self.names: list[list[str]] = []
        for declared in self.definition.inputs:
            if declared.name in attrs:
                given = attrs.pop(declared.name)
                positions = [i.position for i in given if isinstance(i, Input)] if isinstance(given, list) else []
                if positions:
                    given = [graph.read(node.inputs[k].name) for k in positions]
                self.names.append([node.inputs[k].name for k in positions])
                self.inputs.append(given)
            elif declared.arity == "variadic":
                rest = [node.inputs[k].name for k in following]
                self.names.append(rest)
                self.inputs.append([graph.read(name) for name in rest])
            else:
                name = node.inputs[next(following)].name
                self.names.append([name])
                self.inputs.append(graph.read(name))
        self.attrs = self.definition.complete(attrs)

    @property
    def builder(self) -> Builder:
        """Writes the nodes of the graph."""
        return self.graph.builder

    @property
    def changed(self) -> list[Value]:
        """The inputs that the op changes in place."""
        return [x for x, declared in zip(self.inputs, self.definition.inputs, strict=True) if declared.mutated]

    @property
    def outputs(self) -> list[TensorMeta]:
        """The results that are used."""
        return self.node.outputs

    def error(self, reason: str, way_out: str) -> ExportError:
        """The error of this call."""
        return ExportError(f"mt.onnx.export: node '{self.node.name}' (op '{self.op}'): {reason}; {way_out}")

    # The domain and name of the op.

    @property
    def domain(self) -> str:
        """The domain of the op: its plugin, or else its namespace, or else `minitensor`."""
        plugin: str | None = describe(self.op)["plugin"]
        namespace, separator, _ = self.op.rpartition("::")
        return plugin or (namespace if separator and not _is_built_in(self.op) else DOMAIN)

    @property
    def function_name(self) -> str:
        """The name of the op in its domain."""
        return self.op.removeprefix(f"{self.domain}::").replace("::", ".")

    def documentation(self) -> str:
        """The first line of the documentation of the op."""
        text: str = describe(self.op)["doc"] or ""
        return text.strip().partition("\n")[0]

    # Arguments.

    def __getitem__(self, name: str) -> Value:
        """The input of this name, which is given."""
        value = self.optional(name)
        assert value is not None, name
        return value

    def optional(self, name: str) -> Value | None:
        """The input of this name, or None."""
        i = next(k for k, declared in enumerate(self.definition.inputs) if declared.name == name)
        return None if self.inputs[i] is None else self.tensor(i, self._dtype_of_numbers())

    def tensor(self, i: int, dtype: str) -> Value:
        """An input as a tensor; a number becomes a constant of the dtype."""
        value = self.inputs[i]
        if isinstance(value, Value):
            return value
        fixed = self.definition.inputs[i].dtype
        dtype = fixed if fixed == "bool" or fixed in dtypes.INTEGERS else dtype
        if isinstance(value, Sym):
            axis = self.builder.integers([0])
            found = self.builder.node("Squeeze", self.graph.size(value.text), axis).cast(dtype)
        else:
            found = self.builder.number(value, dtype)
        found.shape = ()
        return found

    def operands(self) -> list[Value]:
        """The inputs in the dtype in which they are computed; those of a fixed dtype stay."""
        dtype = dtypes.in_full_precision(self.computed_dtype())
        found = []
        for i, declared in enumerate(self.definition.inputs):
            value = self.tensor(i, dtype)
            found.append(value if declared.dtype in ("bool", "int64") else value.cast(dtype))
        return found

    def _dtype_of_numbers(self) -> str:
        given = [x.dtype for x in self.inputs if isinstance(x, Value)]
        return given[0] if given else "float32"

    def computed_dtype(self) -> str:
        """The dtype to which inputs of the op's dtype variable are promoted."""
        variables = self.definition.dtypes
        pairs = zip(self.inputs, self.definition.inputs, strict=True)
        given = [x.dtype for x, declared in pairs if isinstance(x, Value) and declared.dtype in variables]
        dtype = given[0] if given else "float32"
        for other in given[1:]:
            dtype = _infer_dtypes("where", ["bool", dtype, other], {})[0]
        admitted = next(iter(variables.values()), [dtype])
        return dtype if dtype in admitted else "float32"

    def ranks(self) -> list[int]:
        """The numbers of dimensions of the inputs."""
        return [len(x.shape) if isinstance(x, Value) and x.shape is not None else 0 for x in self.inputs]

    def plain_attributes(self) -> dict[str, Any]:
        """The attributes, which must not depend on sizes."""
        return {name: self.plain(name) for name in self.attrs}

    def plain(self, name: str) -> Any:
        """An attribute that must not depend on sizes."""
        value = self.attrs[name]
        if isinstance(value, Sym) or (isinstance(value, list) and any(isinstance(v, Sym) for v in value)):
            shown = value.text if isinstance(value, Sym) else [str(getattr(v, "text", v)) for v in value]
            raise self.error(
                f"its attribute '{name}' is {shown}, which depends on a size", "export with a fixed size of this axis"
            )
        return value

    def result_dtypes(self) -> list[str]:
        """The dtypes of all results of the op, or of the inputs that it changes."""
        if self.definition.mutated is not None:
            return [value.dtype for value in self.changed]
        if self.wanted is None:
            return [meta.dtype for meta in self.outputs]
        given = [x.dtype if isinstance(x, Value) else None for x in self.inputs]
        found: list[str] = _infer_dtypes(self.op, given, self.plain_attributes())
        return found

    # Sizes.

    def axis(self, name: str, rank: int) -> int:
        """An axis, counted from the first."""
        axis: int = self.plain(name)
        return axis + rank if axis < 0 else axis

    def axes(self, name: str, rank: int) -> list[int]:
        """Axes, counted from the first, in ascending order; None means all."""
        given = self.plain(name)
        return list(range(rank)) if given is None else sorted(a + rank if a < 0 else a for a in given)

    def fixed(self, sizes: Sequence[Size]) -> list[int]:
        """Sizes that must be numbers."""
        for size in sizes:
            if not isinstance(size, int):
                raise self.error(f"a size is '{size}', but must be a number", "export with a fixed size of this axis")
        return [int(size) for size in sizes]

    def sizes_to_reshape(self, sizes: Sequence[Size | Sym]) -> Value:
        """Sizes for Reshape. A single one that is not known is left to the runtime as −1."""
        texts = [size.text if isinstance(size, Sym) else size for size in sizes]
        unknown = [k for k, size in enumerate(texts) if not isinstance(size, int)]
        if len(unknown) == 1 and all(size != 0 for size in texts) and -1 not in texts:
            return self.builder.integers([size if isinstance(size, int) else -1 for size in texts])
        return self.graph.sizes(texts)

    def sizes_of_result(self) -> Value:
        """The sizes of the first result as a tensor."""
        return self.graph.sizes(self.outputs[0].shape)
