"""The dtypes of PyTorch: of results, and of what an op computes with."""

from __future__ import annotations

from typing import Any

from ... import _minitensor as mt
from ... import ops

__all__ = ["Tensor", "cast", "computed", "is_float", "number", "promoted"]

Tensor = mt.Tensor

#: The kinds of dtypes, from the least to the greatest.
_KINDS = {"bool": 0, "unsigned": 1, "signed": 1, "float": 2, "complex": 3}
_DEFAULTS = {bool: "bool", int: "int64", float: "float32", complex: "complex64"}


def cast(x: Any, dtype: str | None) -> Any:
    """Returns a tensor or a number with a dtype."""
    if dtype is None:
        return x
    if not isinstance(x, mt.Tensor):
        return number(x, dtype)
    return x if x.dtype.name == dtype else ops.astype(x, dtype)


def number(value: Any, dtype: str) -> Any:
    """Returns a number of the kind of a dtype."""
    kind = mt.DType(dtype).kind
    if kind == "complex":
        return complex(value)
    return bool(value) if kind == "bool" else float(value) if kind == "float" else int(value)


def is_float(dtype: str) -> bool:
    """Whether the numbers of a dtype are real or complex."""
    return mt.DType(dtype).kind in ("float", "complex")


def promoted(*operands: Any) -> str:
    """Returns the dtype in which PyTorch computes with tensors and numbers.

    Tensors with dimensions count most, then tensors without dimensions, then numbers: the others count only if they
    are of a greater kind.
    """
    groups: list[list[str]] = [[], [], []]
    for operand in operands:
        if isinstance(operand, mt.Tensor):
            groups[0 if operand.ndim else 1].append(operand.dtype.name)
        else:
            groups[2].append(_DEFAULTS[type(operand)])
    dtype: str | None = None
    for group in groups:
        joined = None
        for name in group:
            joined = name if joined is None else _joined(joined, name)
        if joined is not None and (dtype is None or _kind(joined) > _kind(dtype)):
            # The default of a number does not widen a float: float16 and a complex number are complex64.
            dtype = joined
    assert dtype is not None
    return dtype


def _kind(dtype: str) -> int:
    return _KINDS[mt.DType(dtype).kind]


def _joined(a: str, b: str) -> str:
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    if _kind(a) != _kind(b):
        small, large = sorted((a, b), key=_kind)
        return "complex128" if (small, large) == ("float64", "complex64") else large
    found: str = (mt.zeros(1, dtype=a) + mt.zeros(1, dtype=b)).dtype.name if a != b else a
    return found


def computed(x: Tensor) -> Tensor:
    """Returns the tensor with integers and bools as float32."""
    return x if is_float(x.dtype.name) else ops.astype(x, "float32")
