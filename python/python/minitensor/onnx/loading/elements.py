"""Dtypes of ONNX, and the elements of tensors in models and in files next to them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import SparseTensorProto, TensorProto, numpy_helper

from .error import OnnxError
from .narrow import FORMATS, Format

__all__ = ["DTYPES", "array_of", "dense", "dtype_of", "format_of", "type_name"]

#: The names of the dtypes that minitensor has.
DTYPES = {
    TensorProto.BOOL: "bool",
    TensorProto.UINT8: "uint8",
    TensorProto.UINT16: "uint16",
    TensorProto.UINT32: "uint32",
    TensorProto.UINT64: "uint64",
    TensorProto.INT8: "int8",
    TensorProto.INT16: "int16",
    TensorProto.INT32: "int32",
    TensorProto.INT64: "int64",
    TensorProto.FLOAT16: "float16",
    TensorProto.BFLOAT16: "bfloat16",
    TensorProto.FLOAT: "float32",
    TensorProto.DOUBLE: "float64",
    TensorProto.COMPLEX64: "complex64",
    TensorProto.COMPLEX128: "complex128",
}

#: The largest number of elements of a tensor that is stored as coordinates and values.
MAX_DENSE = 1 << 28


def type_name(data_type: int) -> str:
    """Returns the name of an element type in ONNX, such as `FLOAT`."""
    try:
        return TensorProto.DataType.Name(data_type)
    except ValueError:
        return f"number {data_type}"


def dtype_of(data_type: int) -> str:
    """Returns the name of the dtype for an element type of ONNX."""
    dtype = DTYPES.get(data_type)
    if dtype is None:
        raise OnnxError(f"minitensor has no dtype for the element type {type_name(data_type)}")
    return dtype


def format_of(data_type: int) -> Format | None:
    """Returns the narrow format of an element type; None if it is another type."""
    return FORMATS.get(type_name(data_type))


def _bits(data_type: int) -> int:
    if data_type in DTYPES:
        return 16 if DTYPES[data_type] == "bfloat16" else 8 * np.dtype(DTYPES[data_type]).itemsize
    found = format_of(data_type)
    if found is None:
        raise OnnxError(f"the element type {type_name(data_type)} is unknown; update the package onnx")
    return 8 if "8" in found.name.partition("E")[0] else 2 if found.name.endswith("INT2") else 4


def array_of(tensor: TensorProto, folder: Path | None) -> npt.NDArray[Any]:
    """Returns the elements of a tensor. Strings are an array of objects.

    Checks that they are as many as its shape says before memory is allocated.
    """
    where = f"tensor '{tensor.name}'"
    shape = tuple(tensor.dims)
    if any(size < 0 for size in shape):
        raise OnnxError(f"{where}: its shape {shape} has a negative size")
    count = math.prod(shape)
    if tensor.data_type == TensorProto.STRING:
        if len(tensor.string_data) != count:
            raise OnnxError(f"{where} has {len(tensor.string_data)} strings, but its shape {shape} has {count}")
        texts = [_decoded(text, where) for text in tensor.string_data]
        return np.array([*texts, None], dtype=object)[:-1].reshape(shape)
    size = -(-count * _bits(tensor.data_type) // 8)
    if tensor.data_location == TensorProto.EXTERNAL:
        data = _external(tensor, folder, where, size)
        tensor = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, raw_data=data)
    if tensor.HasField("raw_data"):
        if len(tensor.raw_data) != size:
            raise OnnxError(
                f"{where} has {len(tensor.raw_data)} bytes, but its shape {shape} and type "
                f"{type_name(tensor.data_type)} need {size}; the file is damaged"
            )
    else:
        # Fields of numbers: two of them are a complex number, and one has up to four narrow ones.
        fields = (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data, tensor.uint64_data)
        given = sum(map(len, fields))
        if not count <= given * 4 <= 16 * count:
            raise OnnxError(f"{where} has {given} numbers, but its shape {shape} has {count}; the file is damaged")
    try:
        return numpy_helper.to_array(tensor)
    except Exception as error:
        raise OnnxError(f"{where} cannot be read: {error}") from error


def _decoded(text: bytes, where: str) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise OnnxError(f"{where} has a string that is not UTF-8: {error}") from None


def _external(tensor: TensorProto, folder: Path | None, where: str, size: int) -> bytes:
    """Reads elements from a file next to the model. A model must not read any other file."""
    fields = {entry.key: entry.value for entry in tensor.external_data}
    location = fields.get("location", "")
    if folder is None:
        raise OnnxError(f"{where} is in the file '{location}'; load the model from its path instead of its bytes")
    root = folder.resolve()
    path = (root / location).resolve()
    if not location or not path.is_relative_to(root) or path == root:
        raise OnnxError(f"{where} is in the file '{location}', which is not in the folder of the model")
    if not path.is_file():
        raise OnnxError(f"{where}: there is no file '{location}' next to the model; copy it there")
    try:
        offset = int(fields.get("offset") or 0)
        length = int(fields.get("length") or size)
    except ValueError as error:
        raise OnnxError(f"{where}: its place in the file '{location}' is not a number: {error}") from None
    if offset < 0 or length != size or offset + length > path.stat().st_size:
        raise OnnxError(
            f"{where}: bytes {offset} to {offset + length} of the file '{location}' are expected to have {size} "
            f"bytes, but the file ends at {path.stat().st_size}; copy the whole file"
        )
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)


def dense(tensor: SparseTensorProto, folder: Path | None) -> npt.NDArray[Any]:
    """Returns all elements of a sparse tensor."""
    shape = tuple(tensor.dims)
    where = f"sparse tensor '{tensor.values.name}'"
    if not shape or any(size <= 0 for size in shape) or math.prod(shape) > MAX_DENSE:
        raise OnnxError(f"{where}: a shape {shape} is not supported; expected up to {MAX_DENSE} elements")
    values, indices = array_of(tensor.values, folder), array_of(tensor.indices, folder)
    found = np.zeros(shape, values.dtype)
    try:
        if indices.ndim == 1:
            found.reshape(-1)[indices] = values
        else:
            found[tuple(indices.T)] = values
    except (IndexError, ValueError) as error:
        raise OnnxError(f"{where}: {error}") from None
    return found
