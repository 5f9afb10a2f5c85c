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
    tensors: list[Any] = []
    for flag in call.present:
        tensor = None if flag == "0" else np.asarray(next(given))
        tensors.append(tensor.astype(wide(tensor.dtype.name)) if tensor is not None and flag == "2" else tensor)
    if call.wrt:
        wanted = [[flag == "1" for flag in word] for word in call.words]
        results = _gradient(definition.name, tensors, call.attributes, wanted, [])
    else:
        first = len(definition.inputs) - 1
        args = [*tensors[:first], tensors[first:]] if definition.is_variadic else tensors
        found = _array_function(definition.name)(*args, **call.attributes)
        results = list(found) if isinstance(found, tuple) else [found]
    return [jnp.asarray(r) for r in results]
