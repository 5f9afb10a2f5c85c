"""Calls of ops whose results have shapes that depend on values. They are computed at once, outside of XLA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from .._minitensor import _array_function, _gradient
from .abstract import wide
from .call import Call


def compute(call: Call, arrays: Sequence[Any]) -> list[Any]:
    """Computes a call on arrays that have values."""
    definition = call.definition
    given = iter(arrays)
    tensors = [None if flag == "0" else np.asarray(next(given)) for flag in call.present]
    tensors = [
        t.astype(wide(t.dtype.name)) if flag == "2" else t for t, flag in zip(tensors, call.present, strict=True)
    ]
    if call.wrt:
        wanted = [[flag == "1" for flag in word] for word in call.words]
        results = _gradient(definition.name, tensors, call.attributes, wanted)
    else:
        first = len(definition.inputs) - 1
        args = [*tensors[:first], tensors[first:]] if definition.is_variadic else tensors
        found = _array_function(definition.name)(*args, **call.attributes)
        results = list(found) if isinstance(found, tuple) else [found]
    return [jnp.asarray(r) for r in results]
