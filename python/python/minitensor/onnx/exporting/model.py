"""A graph with its weights as a model of ONNX."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import onnx
from onnx import helper

from ..._minitensor import Tensor, __version__, _tensor_bytes
from ...ir import TensorMeta
from ...ir.meta import ITEMSIZE
from . import dtypes
from .builder import Builder
from .error import ExportError
from .functions import Functions
from .graph import Graph
from .source import Source

__all__ = ["Model"]

#: A message of protobuf has at most 2 GiB.
_MOST = 2**31 - 2**24


class Model:
    """A model of ONNX."""

    def __init__(
        self, source: Source, opset: int, input_names: Sequence[str] | None, output_names: Sequence[str] | None
    ) -> None:
        self._source = source
        ir = source.ir
        builder = Builder(Functions(opset))
        weights = [meta.name for meta in ir.weights]
        inputs = _names("input_names", input_names, source.inputs, weights)
        outputs = _names("output_names", output_names, source.outputs, [*weights, *inputs])
        builder.taken.update(outputs)
        names = {meta.name: name for meta, name in zip(ir.inputs, inputs, strict=True)}
        self.graph = Graph(ir, builder, names)
        results = self._results(builder, outputs)
        proto = helper.make_graph(
            builder.nodes,
            ir.name or "graph",
            [_info(names[meta.name], meta) for meta in ir.inputs],
            results,
            value_info=self._infos({*inputs, *outputs, *weights}),
        )
        functions = builder.functions.protos
        domains = builder.domains | {f.domain for f in functions}
        imports = [helper.make_opsetid(domain, opset if domain == "" else 1) for domain in sorted(domains)]
        self.proto = helper.make_model(
            proto,
            functions=functions,
            opset_imports=imports,
            producer_name="minitensor",
            producer_version=__version__,
            ir_version=max(10, helper.find_min_ir_version_for(imports, ignore_unknown=True)),
        )

    def _results(self, builder: Builder, names: Sequence[str]) -> list[onnx.ValueInfoProto]:
        """Gives the results their names."""
        builder.prefix = ""
        renamed: dict[str, str] = {}
        made = {name for node in builder.nodes for name in node.output}
        infos = []
        for meta, name in zip(self._source.ir.outputs, names, strict=True):
            value = self.graph.read(meta.name)
            if value.name in made and value.name not in renamed:
                renamed[value.name] = name
            else:
                # An input, a weight, or a result that occurs twice.
                builder.nodes.append(helper.make_node("Identity", [value.name], [name], name=name))
            infos.append(_info(name, meta))
        for node in builder.nodes:
            for part in (node.input, node.output):
                for k, name in enumerate(part):
                    part[k] = renamed.get(name, name)
        return infos

    def _infos(self, known: set[str]) -> list[onnx.ValueInfoProto]:
        """The dtypes and shapes of the results of calls, which the check compares with those that ONNX infers."""
        infos: dict[str, onnx.ValueInfoProto] = {}
        made = {name for node in self.graph.builder.nodes for name in node.output}
        for node in self._source.ir.nodes:
            for meta in node.outputs:
                name = self.graph.memory.first(meta.name).name
                if name in made - known:
                    infos[name] = _info(name, meta)
        return list(infos.values())

    def check(self) -> None:
        """Raises ExportError if the model is not valid, or has other shapes than those of minitensor."""
        try:
            if self._size() > _MOST:
                # The checker takes models that fit into one message: the weights become inputs.
                bare = onnx.ModelProto()
                bare.CopyFrom(self.proto)
                bare.graph.input.extend(_info(meta.name, meta) for meta in self._source.ir.weights)
                onnx.checker.check_model(bare, full_check=True)
            else:
                onnx.checker.check_model(self._whole, full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            raise ExportError(
                f"mt.onnx.export: onnx {onnx.__version__} does not accept the graph: {error}; if opset= is not the "
                "default, try that, and report this otherwise"
            ) from error

    def _size(self) -> int:
        return sum(math.prod(t.shape) * ITEMSIZE[t.dtype.name] for t in self._weights().values())

    def _weights(self) -> Mapping[str, Tensor]:
        return {meta.name: self._source.tensors[meta.name] for meta in self._source.ir.weights}

    @cached_property
    def _whole(self) -> onnx.ModelProto:
        """The model with its weights."""
        whole = onnx.ModelProto()
        whole.CopyFrom(self.proto)
        whole.graph.initializer.extend(dtypes.tensor(name, t) for name, t in self._weights().items())
        return whole

    def to_bytes(self) -> bytes:
        """The file."""
        if self._size() > _MOST:
            raise ExportError(
                "mt.onnx.export: the weights have more than 2 GiB, the limit of a file of ONNX; pass "
                "external_data=True to write them to a second file"
            )
        found: bytes = self._whole.SerializeToString()
        return found

    def to_bytes_with(self, location: str) -> bytes:
        """The file, for weights in a second file with the name `location`, which has the chunks."""
        whole = onnx.ModelProto()
        whole.CopyFrom(self.proto)
        offset = 0
        for name, t in self._weights().items():
            length = math.prod(t.shape) * ITEMSIZE[t.dtype.name]
            tensor = onnx.TensorProto(name=name, data_type=dtypes.to_onnx(t.dtype.name), dims=t.shape)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
                tensor.external_data.add(key=key, value=value)
            whole.graph.initializer.append(tensor)
            offset += length + _padding(length)
        found: bytes = whole.SerializeToString()
        return found

    def chunks(self) -> Iterator[bytes]:
        """The elements of the weights, each followed by zeros up to the next page."""
        for t in self._weights().values():
            data = _tensor_bytes(t.detach())
            yield data
            yield bytes(_padding(len(data)))


def _padding(length: int) -> int:
    """The bytes after a tensor, so that the next begins at a page: runtimes map weights into memory."""
    return -length % 4096


def _info(name: str, meta: TensorMeta) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtypes.to_onnx(meta.dtype), list(meta.shape))


def _names(what: str, given: Sequence[str] | None, own: Sequence[str], taken: Sequence[str]) -> list[str]:
    """The names of the inputs or of the results. Own names are changed if they are taken."""
    if given is None:
        found: list[str] = []
        for name in own:
            unique, number = name, 1
            while unique in taken or unique in found:
                number += 1
                unique = f"{name}_{number}"
            found.append(unique)
        return found
    if isinstance(given, str) or len(given) != len(own):
        raise ExportError(
            f"mt.onnx.export: {what}= must be a list of {len(own)} names ({', '.join(own)}), got {given!r}"
        )
    clash = [name for k, name in enumerate(given) if name in taken or name in given[:k]]
    if clash:
        raise ExportError(
            f"mt.onnx.export: {what}= has the name '{clash[0]}', which another tensor of the model has; choose another"
        )
    return list(given)
