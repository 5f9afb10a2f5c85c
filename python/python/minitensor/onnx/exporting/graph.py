"""`Graph`: an IR as nodes of ONNX."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from ..._minitensor import Tensor
from ...ir import IR, OpNode
from ...ir.symbols import Size, canonical
from ...saving import nodes
from .builder import Builder, Value
from .call import Call
from .error import ExportError
from .lowering import lowered
from .primitives import integer_floor_divide
from .writes import Memory

__all__ = ["Graph"]

_OPERATORS: dict[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: lambda x, y: x + y,
    ast.Sub: lambda x, y: x - y,
    ast.Mult: lambda x, y: x * y,
    ast.FloorDiv: integer_floor_divide,
    ast.Mod: lambda x, y: x.apply("Mod", y),
    ast.Pow: lambda x, y: x.apply("Pow", y),
}


class Graph:
    """Writes the calls of an IR. `names` are the names of tensors in the file, by those in the IR.

    `constants` are weights that become nodes.
    """

    def __init__(
        self, ir: IR, builder: Builder, names: Mapping[str, str], constants: Mapping[str, Tensor] | None = None
    ) -> None:
        self.ir = ir
        self.builder = builder
        self.memory = Memory(self)
        #: The ops that only a runtime with a kernel of their own computes: the domain, and why.
        self.opaque: dict[str, tuple[str, str]] = {}
        self._sizes: dict[str, Value] = {}
        for meta in (*ir.inputs, *ir.weights):
            if constants is not None and meta.name in constants:
                value = builder.tensor(constants[meta.name])
            else:
                name = names.get(meta.name, meta.name)
                builder.taken.add(name)
                value = Value(builder, name, meta.dtype, meta.shape)
            self.memory.define(meta.name, value)
        for node in ir.nodes:
            self._write(node)

    def read(self, name: str) -> Value:
        """The present value of a tensor."""
        return self.memory.read(name)

    def _write(self, node: OpNode) -> None:
        if node.op_type == nodes.KEY:
            # An op that reads it raises an error.
            self.memory.define(node.outputs[0].name, Value(self.builder, "", "uint64", (2,)))
            return
        if node.op_type == nodes.DETACH:
            self.memory.define(node.outputs[0].name, self.read(node.inputs[0].name), node)
            return
        if not node.op_type.startswith(nodes.PREFIX):
            raise ExportError(
                f"mt.onnx.export: node '{node.name}' calls '{node.op_type}', which is no op of minitensor; export a "
                "graph of ops of minitensor, or one of ATen whose calls all have rules"
            )
        call = Call(self, node)
        results = self.results(call)
        if call.definition.mutated is not None:
            changed = [names[0] for names, i in zip(call.names, call.definition.inputs, strict=True) if i.mutated]
            for name, value in zip(changed, results, strict=True):
                self.memory.write(name, value, call)
            return
        for meta, value in zip(node.outputs, results, strict=True):
            self.memory.define(meta.name, value, node)

    def results(self, call: Call) -> list[Value]:
        """Writes a call. Returns its results that are used, or the new values of the tensors that it changes."""
        self.builder.prefix = f"{call.node.name}/"
        shapes = [value.shape for value in call.changed] or [meta.shape for meta in call.outputs]
        found = lowered(call)
        if call.wanted is not None:
            found = [found[k] for k in call.wanted]
        return [Value(self.builder, v.name, v.dtype, shape) for v, shape in zip(found, shapes, strict=True)]

    # Sizes.

    def sizes(self, sizes: Sequence[Size]) -> Value:
        """Sizes as a list of integers. Those that depend on an input are computed."""
        parts: list[Value] = []
        constants: list[int] = []
        for size in sizes:
            if isinstance(size, int):
                constants.append(size)
                continue
            if constants:
                parts.append(self.builder.integers(constants))
                constants = []
            parts.append(self.size(size))
        if constants or not parts:
            parts.append(self.builder.integers(constants))
        return self.builder.concat(parts)

    def size(self, size: Size) -> Value:
        """A size as a list of one integer."""
        if isinstance(size, int):
            return self.builder.integers([size])
        text = canonical(size)
        if text not in self._sizes:
            self._sizes[text] = self._computed(ast.parse(text, mode="eval").body)
        return self._sizes[text]

    def _computed(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=int(value)):
                return self.builder.integers([value])
            case ast.Name(id=name):
                return self._symbol(name)
            case ast.UnaryOp(operand=operand):
                return -self.size(ast.unparse(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return _OPERATORS[type(op)](self.size(ast.unparse(left)), self.size(ast.unparse(right)))
            case ast.Call(func=ast.Name(id=name), args=args):
                values = [self.size(ast.unparse(arg)) for arg in args]
                return self.builder.node("Max" if name == "max" else "Min", *values)
        raise AssertionError(ast.dump(node))

    def _symbol(self, name: str) -> Value:
        for meta in self.ir.inputs:
            if name in meta.shape:
                axis = meta.shape.index(name)
                first = self.memory.first(meta.name)
                return self.builder.shape(first, axis, axis + 1)
        raise ExportError(
            f"mt.onnx.export: no input has an axis of size '{name}', so the graph cannot compute with it; extract the "
            "IR with fixed sizes"
        )
