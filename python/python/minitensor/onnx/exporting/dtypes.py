"""The dtypes of ONNX, and in which of them a runtime computes an op."""

from __future__ import annotations

import onnx

from ..._minitensor import Tensor, _tensor_bytes

__all__ = ["HALF", "INTEGERS", "UNSIGNED", "computed", "in_full_precision", "is_float", "tensor", "to_onnx"]

_T = onnx.TensorProto

#: The dtypes of minitensor as those of ONNX.
_ONNX: dict[str, int] = {
    "bool": _T.BOOL,
    "int8": _T.INT8,
    "int16": _T.INT16,
    "int32": _T.INT32,
    "int64": _T.INT64,
    "uint8": _T.UINT8,
    "uint16": _T.UINT16,
    "uint32": _T.UINT32,
    "uint64": _T.UINT64,
    "float16": _T.FLOAT16,
    "bfloat16": _T.BFLOAT16,
    "float32": _T.FLOAT,
    "float64": _T.DOUBLE,
    "complex64": _T.COMPLEX64,
    "complex128": _T.COMPLEX128,
}

HALF = ("float16", "bfloat16")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = ("int8", "int16", "int32", "int64", *UNSIGNED)


def to_onnx(dtype: str) -> int:
    """Returns the dtype of ONNX."""
    return _ONNX[dtype]


def tensor(name: str, t: Tensor) -> onnx.TensorProto:
    """Returns a tensor of ONNX."""
    found = onnx.TensorProto(name=name, data_type=to_onnx(t.dtype.name), dims=t.shape)
    found.raw_data = _tensor_bytes(t.detach())
    return found


def is_float(dtype: str) -> bool:
    """Whether the numbers are real and not integers."""
    return dtype.startswith(("float", "bfloat"))


def in_full_precision(dtype: str) -> str:
    """Returns the dtype in which numbers are computed: half floats are a storage format."""
    return "float32" if dtype in HALF else dtype


_FLOATS = ("float32", "float64")
_WORDS = ("int32", "int64")
_REDUCED = (*_FLOATS, *_WORDS)

#: The dtypes that onnxruntime computes an op in, for those ops that it does not compute in all dtypes of ONNX.
_KERNELS: dict[str, tuple[str, ...]] = {
    "ArgMax": (*_REDUCED, "int8", "uint8"),
    "ArgMin": (*_REDUCED, "int8", "uint8"),
    "Clip": (*_REDUCED, "float16", "int8", "uint8", "uint32", "uint64"),
    "CumSum": _REDUCED,
    "Expand": ("bool", "float16", *_FLOATS, *INTEGERS),
    "MatMul": (*_REDUCED, "uint32", "uint64"),
    "Max": (*_REDUCED, "float16", "int8", "uint8", "uint32", "uint64"),
    "Min": (*_REDUCED, "float16", "int8", "uint8", "uint32", "uint64"),
    "Neg": (*_REDUCED, "int8", "int16"),
    "NonZero": ("bool", "float32", *_WORDS, "uint8"),
    "Pad": (*_REDUCED, "bool", "bfloat16", "int8", "uint8", "uint32", "uint64"),
    "Pow": _REDUCED,
    "ReduceMax": (*_REDUCED, "bool", "int8", "uint8"),
    "ReduceMin": (*_REDUCED, "bool", "int8", "uint8"),
    "ReduceProd": _REDUCED,
    "ReduceSum": _REDUCED,
    "Relu": (*_FLOATS, "int32", "int8"),
    "ScatterElements.add": (*_REDUCED, "uint8"),
    "TopK": (*_REDUCED, "int8", "int16", "uint8"),
    "Trilu": (*_REDUCED, "bool"),
    "Where": (*_REDUCED, "int8", "uint8", "uint32"),
}
#: Dtypes that have all values of a dtype, from the smallest. For uint64, int64 has the same bits.
_WIDER: dict[str, tuple[str, ...]] = {
    "bool": ("uint8", "int32"),
    "int8": ("int32",),
    "int16": ("int32",),
    "uint8": ("int32",),
    "uint16": ("int32",),
    "uint32": ("int64",),
    "uint64": ("int64",),
    "float16": ("float32",),
    "bfloat16": ("float32",),
}


def computed(op: str, dtype: str) -> str:
    """Returns the dtype in which an op is computed. A wider one has the same results, as integers wrap around."""
    known = _KERNELS.get(op)
    if known is None or dtype in known:
        return dtype
    return next((wide for wide in _WIDER.get(dtype, ()) if wide in known), dtype)
