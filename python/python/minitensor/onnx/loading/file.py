"""A file, bytes, or a `ModelProto` becomes a model that follows the rules of ONNX."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from .error import OnnxError

__all__ = ["read"]

#: Protocol buffers have no larger messages. Larger models store their tensors in other files.
MAX_BYTES = 2**31 - 1
#: The checker gets tensors of at most this many bytes.
SMALL = 1024
#: How deep subgraphs may be nested.
MAX_DEPTH = 24
#: How the files begin that are taken for ONNX models by mistake.
_OTHER_FORMATS = {
    b"PK\x03\x04": "a ZIP archive, such as a checkpoint of PyTorch; export the model with torch.onnx.export",
    b"\x89HDF": "an HDF5 file; export the model with tf2onnx",
    b"{": "JSON text",
    b"<": "a page of the web or XML text; download the model again",
    b"version https://git-lfs": "a pointer of Git LFS; download the model with: git lfs pull",
    b"\x1f\x8b": "a gzip archive; unpack it",
}


def read(source: Any) -> tuple[ModelProto, Path | None]:
    """Returns a valid model, and the folder of the files next to it."""
    folder = None
    if isinstance(source, ModelProto):
        model = source
    else:
        if isinstance(source, (bytes, bytearray, memoryview)):
            data, name = bytes(source), "the argument"
        elif isinstance(source, (str, os.PathLike)):
            path = Path(source)
            data, name, folder = _data(path), f"'{path}'", path.parent
        else:
            raise TypeError(f"mt.onnx.load takes a path, bytes or a ModelProto, got {type(source).__name__}")
        model = _parsed(data, name)
    _check(model)
    return model, folder


def _data(path: Path) -> bytes:
    if not path.exists():
        raise FileNotFoundError(f"mt.onnx.load: there is no file '{path}'")
    if not path.is_file():
        raise OnnxError(f"'{path}' is not a file; pass the path of the .onnx file")
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise OnnxError(
            f"'{path}' has {size} bytes, but an ONNX file has at most {MAX_BYTES}; save the model with "
            "onnx.save(model, path, save_as_external_data=True)"
        )
    return path.read_bytes()


def _parsed(data: bytes, name: str) -> ModelProto:
    for beginning, what in _OTHER_FORMATS.items():
        if data.startswith(beginning):
            raise OnnxError(f"{name} is not an ONNX model: it is {what}")
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, RecursionError) as error:
        raise OnnxError(f"{name} is not an ONNX model, or it is truncated: {error}") from None
    if not model.HasField("graph"):
        raise OnnxError(f"{name} is not an ONNX model: it has no graph")
    return model


def _check(model: ModelProto) -> None:
    """Raises OnnxError unless the model follows the rules of ONNX."""
    _check_depth(model.graph, 0)
    for function in model.functions:
        _check_nodes(function.node, 0)
    latest = onnx.defs.onnx_opset_version()
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx") and opset.version > latest:
            raise OnnxError(
                f"the model uses opset {opset.version}, but the installed package onnx knows {latest}; "
                "update it with: pip install -U onnx"
            )
    try:
        onnx.checker.check_model(_without_elements(model))
    except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        raise OnnxError(f"the model is not valid ONNX: {error}") from None


def _without_elements(model: ModelProto) -> ModelProto:
    """Returns the model for the checker, with empty tensors instead of large ones.

    The checker copies the model, and opens other files. `elements` checks and reads the tensors.
    """
    bare = ModelProto()
    bare.CopyFrom(model)
    for tensor in bare.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL or len(tensor.raw_data) > SMALL:
            del tensor.dims[:]
            tensor.dims.append(0)
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.raw_data = b""
    return bare


def _check_depth(graph: GraphProto, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise OnnxError(f"graph '{graph.name}': subgraphs are nested deeper than {MAX_DEPTH}")
    _check_nodes(graph.node, depth)


def _check_nodes(nodes: Any, depth: int) -> None:
    node: NodeProto
    for node in nodes:
        attribute: AttributeProto
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _check_depth(attribute.g, depth + 1)
            for graph in attribute.graphs:
                _check_depth(graph, depth + 1)
