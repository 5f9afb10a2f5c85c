"""Ops on the arrays of NumPy and of libraries that divide arrays into chunks.

| file | contents |
|---|---|
| `names` | the registered name of an op, and the plugin that it belongs to |
| `rule` | the shape rule of a call, and its signature in NumPy's notation |
| `ufunc`, `reduction` | an op as an object like NumPy's ufuncs |
| `block` | an op as a function that workers can unpickle |
| `plan` | the core axes, the signature, and the shapes and dtypes of the results of a call on chunked arrays |
| `chunks`, `dask`, `cubed`, `xarray` | calls on chunked arrays |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .chunks import map_blocks
from .names import op_name
from .rule import gufunc_signature

if TYPE_CHECKING:
    from .ufunc import Ufunc

__all__ = ["as_ufunc", "gufunc_signature", "map_blocks"]


def as_ufunc(op: Any) -> Ufunc:
    """Returns an op as an object like NumPy's universal functions.

    `op` is an op or its name. Element ops become ufuncs, with `out`, `where`, `dtype`, `casting`, `order` and `subok`;
    those of two inputs and one output also have `reduce`, `accumulate`, `reduceat`, `outer` and `at`. Ops with a shape
    clause
    become generalized ufuncs, with `out`, `dtype`, `casting`, `axes`, `axis` and `keepdims`. Attributes of the op are
    keywords
    of a call. Integers become floats by the rules of the op.

    Raises TypeError for other ops, and for arguments that do not apply to the op.

    >>> import minitensor as mt
    >>> import numpy as np
    >>> clamp = mt.as_ufunc("clamp")
    >>> clamp(np.array([-1.0, 0.5, 2.0]), lo=0.0, hi=1.0, out=np.zeros(3))
    array([0. , 0.5, 1. ])
    >>> mt.as_ufunc("logaddexp").reduce(np.zeros((2, 4)), axis=1)
    array([1.38629436, 1.38629436])
    >>> mt.as_ufunc(mt.ops.layer_norm).signature
    '(n),(n),(n)->(n)'
    """
    # Imported on demand, because it imports NumPy.
    from .ufunc import Ufunc

    return Ufunc(op_name(op, "as_ufunc"))
