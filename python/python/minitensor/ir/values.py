"""Tensors of different libraries as tensors of minitensor, and back. Memory is shared where possible."""

from __future__ import annotations

from typing import Any

from .. import _minitensor as mt
from .error import IRError
from .meta import Constant

__all__ = ["Kind", "constant", "kind_of", "to_kind", "to_minitensor", "to_torch"]

#: The library of a tensor: `minitensor`, `torch` or `numpy`.
Kind = str


def kind_of(value: Any) -> Kind:
    """Returns the library of a tensor."""
    if isinstance(value, mt.Tensor):
        return "minitensor"
    roots = {cls.__module__.partition(".")[0] for cls in type(value).__mro__}
    return "torch" if "torch" in roots else "numpy"


def to_minitensor(value: Any) -> mt.Tensor:
    """Returns a tensor of minitensor."""
    if isinstance(value, mt.Tensor):
        return value
    if kind_of(value) == "torch":
        plain = value.detach().resolve_conj().resolve_neg()
        if plain.device.type == "meta" or type(plain).__name__ == "FakeTensor":
            raise IRError("a tensor on the device 'meta' has no elements; pass weights and inputs with elements")
        return mt.from_dlpack(plain.cpu())
    return mt.asarray(value)


def to_torch(value: Any) -> Any:
    """Returns a tensor of PyTorch."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach()
    plain = to_minitensor(value).detach()
    # PyTorch has no negative strides.
    return torch.from_dlpack(plain if min(plain.strides, default=0) >= 0 else plain.contiguous())


def to_kind(value: Any, kind: Kind) -> Any:
    """Returns a tensor of a library."""
    if kind == "torch":
        return to_torch(value)
    return to_minitensor(value).numpy() if kind == "numpy" else to_minitensor(value)


def constant(value: Constant) -> mt.Tensor:
    """Returns the tensor of a constant."""
    import numpy as np

    words = {"bfloat16": "uint16"}
    dtype = value.meta.dtype
    array = np.frombuffer(value.data, np.dtype(words.get(dtype, dtype)).newbyteorder("<")).reshape(
        [int(size) for size in value.meta.shape]
    )
    if dtype != "bfloat16":
        return mt.asarray(array.astype(np.dtype(dtype)))
    # The bits of a bfloat16 are the upper half of those of a float32.
    return mt.asarray((array.astype(np.uint32) << 16).view(np.float32)).astype("bfloat16")
