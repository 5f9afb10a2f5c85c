"""How the numbers of a program are stored as a result of its op."""

from __future__ import annotations

import numpy as np

from . import dtypes
from .builder import Value

__all__ = ["stored"]


def stored(x: Value, dtype: str) -> Value:
    """Numbers in the dtype of a result.

    An integer drops the fraction, is the nearest one of the dtype, and 0 for NaN. ONNX says neither of the last two.
    """
    if dtype not in dtypes.INTEGERS or not dtypes.is_float(x.dtype):
        return x.cast(dtype)
    where, info = x.builder.where, np.iinfo(dtype)
    # The bounds are powers of two, so they are exact. The greatest integer may not be.
    is_small, is_large = x < info.min, x >= 2.0**info.bits / (1 if info.min == 0 else 2)
    found = where(x.isnan() | is_small | is_large, 0, x).cast(dtype)
    return where(is_small, info.min, where(is_large, info.max, found, dtype), dtype)
