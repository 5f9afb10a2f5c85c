"""`Memory`: tensors that calls change in place. ONNX has no memory, so a change is a new value.

A view of a changed tensor is computed again when it is read, and a change of a view is written back to its base.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir import OpNode
from ...saving import nodes
from .builder import Value
from .call import Call
from .error import ExportError
from .rules import regions

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Memory"]

#: The ops whose results share the memory of their first argument.
_VIEWS = {
    "contiguous",
    "crop",
    "expand",
    "flatten",
    "flip",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "region::part",
    "reshape",
    "slice",
    "squeeze",
    "transpose",
    "unsqueeze",
}
#: Those that copy if the layout does not allow a view.
_IF_CONTIGUOUS = {"reshape", "flatten", "contiguous"}


class Memory:
    """The present values of tensors."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._values: dict[str, Value] = {}
        self._first: dict[str, Value] = {}
        #: The views: the tensor that each shares memory with, and the call that made it.
        self._views: dict[str, tuple[str, OpNode]] = {}
        self._is_contiguous: dict[str, bool] = {}
        self._stale: set[str] = set()
        #: The names of inputs and weights that calls change.
        self.changed: list[str] = []

    def define(self, name: str, value: Value, node: OpNode | None = None) -> None:
        """Adds a tensor: an input, or a result of a call."""
        self._values[name] = self._first[name] = value
        self._is_contiguous[name] = True
        if node is None:
            return
        op = node.op_type.removeprefix(nodes.PREFIX)
        if op in _VIEWS or node.op_type == nodes.DETACH:
            base = node.inputs[0].name
            self._views[name] = base, node
            self._is_contiguous[name] = self._keeps_contiguity(op, base, node)

    def _keeps_contiguity(self, op: str, base: str, node: OpNode) -> bool:
        if op in _IF_CONTIGUOUS:
            return True
        if op == "slice":
            return self._is_contiguous[base] and node.attrs.get("axis") == 0 and node.attrs.get("step", 1) == 1
        return self._is_contiguous[base] and op in ("squeeze", "unsqueeze", nodes.DETACH)

    def first(self, name: str) -> Value:
        """The value of a tensor before any change."""
        return self._first[name]

    def read(self, name: str) -> Value:
        """The present value of a tensor."""
        if name in self._stale:
            self._stale.discard(name)
            base, node = self._views[name]
            self._values[name] = self._again(name, base, node)
        return self._values[name]

    def _again(self, name: str, base: str, node: OpNode) -> Value:
        if node.op_type == nodes.DETACH:
            return self.read(base)
        op = node.op_type.removeprefix(nodes.PREFIX)
        if op in _IF_CONTIGUOUS and not self._is_contiguous[base]:
            raise ExportError(
                f"mt.onnx.export: node '{node.name}' (op '{op}') is a view or a copy of '{base}', depending on its "
                f"layout, and a later call changes '{base}' in place; write clone() after it, or avoid the change"
            )
        return self._graph.results(Call(self._graph, node))[0]

    def write(self, name: str, value: Value, call: Call) -> None:
        """Changes a tensor in place."""
        root = name
        chain: list[str] = []
        while root in self._views:
            chain.append(root)
            root = self._views[root][0]
        # The values before the change.
        bases = {view: self.read(self._views[view][0]) for view in chain}
        self._values[name] = value
        for view in chain:
            base, node = self._views[view]
            self._values[base] = value = self._written_back(bases[view], value, node, call)
        given = self._first[root].name
        if given not in self.changed and any(root == m.name for m in (*self._graph.ir.inputs, *self._graph.ir.weights)):
            self.changed.append(given)
        kept = {name, *(self._views[view][0] for view in chain)}
        self._stale -= kept
        self._stale |= {view for view in self._views if view not in kept and self._root(view) == root}

    def _root(self, name: str) -> str:
        while name in self._views:
            name = self._views[name][0]
        return name

    def _written_back(self, base: Value, part: Value, node: OpNode, call: Call) -> Value:
        """The base of a view with a new value of the view."""
        if node.op_type == nodes.DETACH:
            return part
        view = Call(self._graph, node)
        assert base.shape is not None
        rank = len(base.shape)
        if view.op in _IF_CONTIGUOUS and not self._is_contiguous[node.inputs[0].name]:
            raise call.error(
                f"it changes the result of '{view.op}', which is a view or a copy, depending on the layout",
                "change the tensor before its shape, or write clone() after it",
            )
        match view.op:
            case "slice":
                found = regions.replaced_slice(view, base, part)
            case "squeeze" | "unsqueeze" | "reshape" | "flatten" | "contiguous":
                found = part.apply("Reshape", view.sizes_to_reshape(base.shape))
            case "permute_dims" | "transpose" | "matrix_transpose" | "moveaxis":
                order = regions.order(view, rank)
                found = part.builder.node("Transpose", part, perm=[order.index(k) for k in range(rank)])
            case _:
                raise call.error(f"it changes a view by '{view.op}' in place", "clone() the view, or avoid the change")
        return Value(found.builder, found.name, found.dtype, base.shape)
