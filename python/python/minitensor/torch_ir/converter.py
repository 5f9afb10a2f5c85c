"""A graph of PyTorch as an IR."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from torch.fx.experimental.symbolic_shapes import ValueRanges

from ..ir import IR, Constant, IRError, OpNode, TensorMeta, symbols
from .analyzer import NodeInfo, analyze, meta_of, op_type_of
from .exporting import export_model
from .ops.registry import get_conversion_fn

__all__ = ["convert", "extract_ir"]

#: A buffer that is not in the state dict becomes a constant if it has no more bytes than this.
MAX_CONSTANT = 2**26
#: Calls that only check sizes and dtypes, which each run checks anyway.
_CHECKS = ("_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range", "sym_constrain_range_for_size")


def extract_ir(
    model: torch.nn.Module | torch.export.ExportedProgram,
    inputs: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    decompositions: Mapping[Any, Any] | None = None,
    name: str | None = None,
) -> IR:
    """Returns the graph of a model, without weights.

    `inputs` is a tuple of arguments, or a dict of arguments by name. Models and inputs may be on the device "meta", so
    that a model needs no memory. Sizes that `dynamic_shapes` names remain symbols. `decompositions` replaces ops by
    others: `torch.export.default_decompositions()` leaves the ops of Core ATen. Without it, composite ops such as
    `linear` and `scaled_dot_product_attention` remain. In-place calls become calls that return new tensors.

    Raises IRError for control flow that depends on elements, and for what an IR cannot have; it names the node.
    """
    if isinstance(model, torch.export.ExportedProgram):
        exported = model
        title = name or "model"
    else:
        exported = export_model(model, inputs, kwargs, dynamic_shapes=dynamic_shapes, strict=strict)
        title = name or type(model).__name__
    try:
        functional = exported.run_decompositions(dict(decompositions or {}))
    except Exception as error:
        raise IRError(
            f"PyTorch cannot remove the in-place calls of {title}: {type(error).__name__}: {error}"
        ) from error
    return convert(functional, title)


def convert(exported: torch.export.ExportedProgram, name: str) -> IR:
    """Returns the IR of an exported program without in-place calls."""
    return _Converter(exported).ir(name)


class _Converter:
    def __init__(self, exported: torch.export.ExportedProgram) -> None:
        self._exported = exported
        #: For each node: the meta of its tensor, a list of metas, or None if it is not a tensor.
        self._tensors: dict[fx.Node, Any] = {}
        self._taken: set[str] = set()
        self._inputs: list[TensorMeta] = []
        self._weights: list[TensorMeta] = []
        self._constants: list[Constant] = []
        self._nodes: list[OpNode] = []

    def ir(self, name: str) -> IR:
        """Returns the IR."""
        graph = self._exported.graph_module.graph
        self._placeholders([node for node in graph.nodes if node.op == "placeholder"])
        for node in graph.nodes:
            if node.op == "call_function":
                self._call(node)
            elif node.op == "get_attr":
                raise IRError(
                    f"node '{node.name}' is a part of the model ({node.target}), as control flow has it (torch.cond, "
                    "torch.while_loop); an IR has calls of ops only. Use torch.where, or extract the parts on their own"
                )
        found = {node.name: self._tensors.get(node) for node in graph.nodes}
        outputs, updates = self._outputs(found)
        ir = IR(name, self._inputs, self._weights, self._nodes, outputs, self._constants, {}, updates)
        ir.symbols = self._symbols(ir)
        ir.check()
        return ir

    def _placeholders(self, nodes: list[fx.Node]) -> None:
        specs = {spec.arg.name: spec for spec in self._exported.graph_signature.input_specs}
        # The names of weights are those of the state dict, so inputs give way.
        self._taken |= {spec.target for spec in specs.values() if spec.target}
        for node in nodes:
            spec = specs[node.name]
            if not isinstance(spec.arg, TensorArgument):
                if isinstance(node.meta.get("val"), torch.SymInt):
                    raise IRError(f"the input '{node.name}' is an integer that is a symbol; pass a number instead")
                continue
            value = node.meta["val"]
            if spec.kind is InputKind.USER_INPUT:
                meta = meta_of(self._fresh(node.name), value)
                self._inputs.append(meta)
            else:
                meta = self._weight(node, spec, value)
            self._tensors[node] = meta

    def _weight(self, node: fx.Node, spec: Any, value: torch.Tensor) -> TensorMeta:
        meta = meta_of(spec.target, value)
        is_in_state = spec.kind is InputKind.PARAMETER or (spec.kind is InputKind.BUFFER and spec.persistent)
        # A buffer that changes is no constant: a run takes its value and returns a new one.
        if not is_in_state and spec.target not in self._exported.graph_signature.buffers_to_mutate.values():
            if not node.users:
                return meta
            known = self._exported.constants.get(spec.target)
            if _has_elements(known) and known.nbytes <= MAX_CONSTANT:
                self._constants.append(Constant(meta, _bytes(known)))
                return meta
        self._weights.append(meta)
        return meta

    def _call(self, node: fx.Node) -> None:
        if node.target is operator.getitem:
            source, index = node.args
            items = self._tensors.get(source)
            self._tensors[node] = items[index] if isinstance(items, list) else None
            return
        value = node.meta.get("val")
        if isinstance(value, (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)):
            self._scalar(node)
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            kind = "control flow" if isinstance(node.target, torch._ops.HigherOrderOperator) else "no op of PyTorch"
            raise IRError(
                f"node '{node.name}' calls {op_type_of(node.target)}, which is {kind}; an IR has calls of ops only. "
                "Use torch.where for control flow, and torch.library.custom_op for functions"
            )
        if node.target._schema.name.removeprefix("aten::") in _CHECKS:
            return
        metas, outputs = self._results(node, value)
        self._tensors[node] = metas
        info = analyze(node, self._tensors, outputs)
        op_type = op_type_of(node.target)
        function = get_conversion_fn(op_type)
        converted = _default_conversion(info) if function is None else function(info)
        if not isinstance(converted, OpNode):
            raise IRError(
                f"node '{node.name}' ({op_type}): the registered conversion {function!r} returned a "
                f"{type(converted).__name__}; return an OpNode"
            )
        if converted.outputs != outputs:
            raise IRError(
                f"node '{node.name}' ({op_type}): the registered conversion {function!r} changed the outputs; pass on "
                "node_info.output_metas"
            )
        _check_strides(node)
        self._nodes.append(converted)

    def _scalar(self, node: fx.Node) -> None:
        """A call whose result is a number. Sizes are expressions; elements of tensors are not known."""
        if any(isinstance(self._tensors.get(arg), TensorMeta) for arg in node.all_input_nodes):
            name = op_type_of(node.target)
            if not name.startswith(("aten.sym_size", "aten.sym_numel", "aten.sym_stride", "aten.sym_storage_offset")):
                raise IRError(
                    f"node '{node.name}' ({name}) reads an element of a tensor as a number, which an IR cannot have; "
                    "keep it as a tensor"
                )
        self._tensors[node] = None

    def _results(self, node: fx.Node, value: Any) -> tuple[Any, list[TensorMeta]]:
        if value is None:
            return None, []
        if isinstance(value, torch.Tensor):
            meta = meta_of(self._fresh(node.name), value)
            return meta, [meta]
        if node.target is torch.ops.aten._native_batch_norm_legit_no_training.default:
            # The statistics that a gradient would need are empty on the CPU, but not on other devices.
            value = [value[0], *(t.new_empty(0) for t in value[1:])]
        names = (self._fresh(f"{node.name}.{i}") for i in range(len(value)))
        metas = [
            meta_of(name, v) if isinstance(v, torch.Tensor) else None for name, v in zip(names, value, strict=True)
        ]
        return metas, [meta for meta in metas if meta is not None]

    def _outputs(self, found: dict[str, Any]) -> tuple[list[TensorMeta], dict[str, str]]:
        outputs, updates = [], {}
        for spec in self._exported.graph_signature.output_specs:
            name = getattr(spec.arg, "name", None)
            meta = found.get(name) if name else None
            if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION, OutputKind.PARAMETER_MUTATION):
                target = found[spec.target].name if spec.kind is OutputKind.USER_INPUT_MUTATION else spec.target
                if meta is not None:
                    updates[target] = meta.name
            elif isinstance(meta, TensorMeta):
                outputs.append(meta)
            elif getattr(spec.arg, "value", self) is not None:
                value = getattr(spec.arg, "value", name)
                raise IRError(f"the model returns {value!r}, which is not a tensor; return tensors only")
        known = {meta.name for meta in (*self._inputs, *self._weights)}
        return outputs, {target: value for target, value in updates.items() if target in known}

    def _symbols(self, ir: IR) -> dict[str, tuple[int, int | None]]:
        used: set[str] = set()
        for meta in ir.tensors():
            for size in meta.shape:
                used |= symbols.names(size) if isinstance(size, str) else set()
        for node in ir.nodes:
            for item in symbols.walk(list(node.attrs.values())):
                used |= symbols.names(item.text) if isinstance(item, symbols.Sym) else set()
        ranges = {str(symbol): limits for symbol, limits in self._exported.range_constraints.items()}
        return {name: _limits(ranges.get(name)) for name in sorted(used)}

    def _fresh(self, name: str) -> str:
        """Returns a name that no tensor has."""
        found, i = name, 1
        while found in self._taken:
            found, i = f"{name}_{i}", i + 1
        self._taken.add(found)
        return found


def _default_conversion(node_info: NodeInfo) -> OpNode:
    """Converts a call of any op with a schema."""
    return OpNode(
        name=node_info.name,
        op_type=op_type_of(node_info.target),
        inputs=node_info.input_metas,
        outputs=node_info.output_metas,
        attrs=node_info.attrs,
    )


def _check_strides(node: fx.Node) -> None:
    """An error for a call that reads the memory of a tensor which is not contiguous: an IR knows no strides."""
    if node.target._schema.name.startswith("aten::as_strided"):
        value = node.args[0].meta["val"]
        is_whole = value.storage_offset() == 0 and value.untyped_storage().nbytes() == value.numel() * value.itemsize
        if not value.is_contiguous() or not is_whole:
            raise IRError(f"node '{node.name}' reads the memory of a tensor that is not contiguous; use .contiguous()")


def _limits(found: ValueRanges[Any] | None) -> tuple[int, int | None]:
    if found is None:
        return 0, None
    least, most = (int(v) if getattr(v, "is_Integer", isinstance(v, int)) else None for v in (found.lower, found.upper))
    return max(least or 0, 0), most if most is not None and most < symbols.LARGEST else None


def _has_elements(tensor: Any) -> bool:
    is_fake = isinstance(tensor, torch._subclasses.FakeTensor)
    return isinstance(tensor, torch.Tensor) and not is_fake and tensor.device.type != "meta"


def _bytes(tensor: torch.Tensor) -> bytes:
    contiguous = tensor.detach().cpu().contiguous().reshape(-1)
    return bytes(contiguous.view(torch.uint8).numpy().tobytes()) if contiguous.numel() else b""
