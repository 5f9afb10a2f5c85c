"""Tensors of narrow formats: floats of 8 and 4 bits, integers of 4 and 2 bits.

minitensor has no dtypes for them. Their numbers are stored in a wider dtype that represents all of them exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._minitensor import Tensor, asarray

__all__ = ["FORMATS", "Format", "NarrowTensor", "decoded", "rounded"]


@dataclass(frozen=True)
class Format:
    """A format: its name in ONNX and in the package `ml_dtypes`, and the dtype that stores its numbers."""

    name: str
    ml_name: str
    storage: str

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of NumPy arrays of this format."""
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, self.ml_name))

    @property
    def is_float(self) -> bool:
        return self.storage == "float32"


#: The formats by their names in ONNX.
FORMATS = {
    name: Format(name, ml_name, storage)
    for name, ml_name, storage in [
        ("FLOAT8E4M3FN", "float8_e4m3fn", "float32"),
        ("FLOAT8E4M3FNUZ", "float8_e4m3fnuz", "float32"),
        ("FLOAT8E5M2", "float8_e5m2", "float32"),
        ("FLOAT8E5M2FNUZ", "float8_e5m2fnuz", "float32"),
        ("FLOAT8E8M0", "float8_e8m0fnu", "float32"),
        ("FLOAT4E2M1", "float4_e2m1fn", "float32"),
        ("INT4", "int4", "int8"),
        ("UINT4", "uint4", "uint8"),
        ("INT2", "int2", "int8"),
        ("UINT2", "uint2", "uint8"),
    ]
}


@dataclass(frozen=True, eq=False)
class NarrowTensor:
    """A tensor of a narrow format. `values` has its numbers in a wider dtype."""

    values: Tensor
    format: Format

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def numpy(self) -> npt.NDArray[Any]:
        """Returns the array of a dtype of the package `ml_dtypes`."""
        return self.values.detach().numpy().astype(self.format.dtype)

    def __repr__(self) -> str:
        return f"{self.format.name} {self.values!r}"


def decoded(array: npt.NDArray[Any], format: Format) -> NarrowTensor:  # noqa: A002 - its name in ONNX
    """Returns the tensor of an array of a dtype of `ml_dtypes`."""
    return NarrowTensor(asarray(array.astype(format.storage)), format)


def rounded(
    x: Tensor,
    format: Format,  # noqa: A002 - its name in ONNX
    saturate: bool = True,
    round_mode: str = "up",
) -> NarrowTensor:
    """Rounds numbers to a format. `saturate` replaces numbers out of its range by the nearest one of it."""
    wide = x.detach().astype("float32" if x.dtype.name in ("float16", "bfloat16") else x.dtype).numpy()
    with np.errstate(all="ignore"):
        if format.name == "FLOAT8E8M0":
            found = _power_of_two(wide.astype("float32"), saturate, round_mode)
            return NarrowTensor(asarray(found), format)
        if format.is_float and saturate:
            import ml_dtypes

            limits = ml_dtypes.finfo(format.dtype)
            wide = np.clip(wide, float(limits.min), float(limits.max))
        return decoded(wide.astype(format.dtype), format)


def _power_of_two(x: npt.NDArray[Any], saturate: bool, round_mode: str) -> npt.NDArray[Any]:
    """Rounds to powers of two from -127 to 127. The format has no sign, no zero and no infinity."""
    bits = np.atleast_1d(x).view("uint32")
    exponent = ((bits >> 23) & 0xFF).astype("int32")
    fraction = bits & 0x7FFFFF
    is_nan = exponent == 0xFF
    if round_mode == "up":
        increment = fraction > 0
    elif round_mode == "nearest":
        # A half is rounded up: the exponent is that of a normal number.
        increment = (fraction > 0x400000) | ((fraction == 0x400000) & (exponent > 0))
    else:
        increment = np.zeros_like(is_nan)
    exponent = exponent + increment
    if saturate:
        exponent = np.minimum(exponent, 0xFE)
    found = np.ldexp(np.float32(1), np.minimum(exponent, 0xFE) - 127)
    return np.where(is_nan | (exponent > 0xFE), np.float32("nan"), found).astype("float32").reshape(x.shape)
