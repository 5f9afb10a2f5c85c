"""The constants of programs as nodes of ONNX."""

from __future__ import annotations

from typing import Any

from .builder import Builder, Value

__all__ = ["EPSILON", "leaf"]

#: The distance from 1 to the next larger number.
EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}


def leaf(builder: Builder, name: str, operands: Any, dtype: str) -> Value | None:
    """A constant number or truth value of a program; None for other functions."""
    match name:
        case "constant":
            return builder.number(_number(operands[0]), dtype)
        case "epsilon":
            return builder.number(EPSILON[dtype], dtype)
        case "truth":
            return builder.constant(operands[0], "bool")
    return None


def _number(value: Any) -> Any:
    """A number that JSON may have as a text."""
    if not isinstance(value, str):
        return value
    return float(value) if value in ("NaN", "inf", "-inf") else int(value)
