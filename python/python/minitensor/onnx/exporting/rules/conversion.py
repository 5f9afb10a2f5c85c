"""Conversions of dtypes and devices, and copies."""

from __future__ import annotations

from typing import NoReturn

from .. import dtypes
from ..builder import Value
from ..call import Call
from ..rule import Refused, rule

__all__ = ["in_dtype_of_result"]


def in_dtype_of_result(call: Call, *names: str) -> list[Value | None]:
    """Inputs in the dtype in which the result is computed."""
    dtype = dtypes.in_full_precision(call.outputs[0].dtype)
    given = [call.optional(name) for name in names]
    return [None if x is None else x.cast(dtype) for x in given]


@rule("clone", "conj", "contiguous", "conversion::conj", "device::copy", "real", only_moves=True)
def copy(call: Call) -> Value:
    return call["x"].apply("Identity")


@rule("complex", "imag", only_moves=True)
def complex_(call: Call) -> NoReturn:
    raise Refused("ONNX has no arithmetic of complex numbers")


@rule("astype", only_moves=True)
def astype(call: Call) -> Value:
    return call["x"].cast(call.outputs[0].dtype)


@rule("zeros_like", only_moves=True)
def zeros_like(call: Call) -> Value:
    return call.builder.node("Expand", call.builder.number(0, call["x"].dtype), call.sizes_of_result())
