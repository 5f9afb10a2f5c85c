"""What an IR knows about a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .symbols import Size, canonical

__all__ = ["ITEMSIZE", "Constant", "TensorMeta"]

#: The dtypes, with the bytes of an element.
ITEMSIZE = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}


@dataclass(frozen=True)
class TensorMeta:
    """The name, shape and dtype of a tensor. A size is a number, or an expression of symbols as a text.

    >>> from minitensor import ir
    >>> ir.TensorMeta("x", ("batch", 3), "float32")
    TensorMeta(name='x', shape=('batch', 3), dtype='float32')
    """

    name: str
    shape: tuple[Size, ...]
    dtype: str

    def __post_init__(self) -> None:
        if isinstance(self.shape, Sequence) and not isinstance(self.shape, str):
            shape = tuple(canonical(s) if isinstance(s, str) else s for s in self.shape)
            object.__setattr__(self, "shape", shape)

    def __str__(self) -> str:
        comma = "," if len(self.shape) == 1 else ""
        return f"{self.name}: {self.dtype} ({', '.join(map(str, self.shape))}{comma})"


@dataclass(frozen=True)
class Constant:
    """A tensor whose elements are part of the IR. `data` has them in little-endian order, the last axis first."""

    meta: TensorMeta
    data: bytes

    @property
    def name(self) -> str:
        """The name of the tensor."""
        return self.meta.name
