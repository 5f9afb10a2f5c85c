"""What of a result travels from a worker to the conductor, and whether two frameworks mean the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .rows import Array

SIZE = 10_000
"""How many elements of an array are compared."""

TOLERANCE = {"float32": 2e-3, "float64": 1e-7, "bfloat16": 5e-2}
"""Loose, relative to the largest element: it is enough that the work is the same."""

TIES = 0.01
"""How many whole numbers may differ: among equal elements any order is right."""


@dataclass(frozen=True)
class Sample:
    """The shape of an array, and some of its elements."""

    shape: tuple[int, ...]
    elements: Array

    @classmethod
    def of(cls, array: Array) -> Sample:
        flat = array.ravel()
        # A prime number of steps visits all rows and all columns.
        at = np.arange(SIZE) * 7919 % flat.size if flat.size > SIZE else np.arange(flat.size)
        return cls(array.shape, flat[at])

    def difference(self, other: Sample, dtype: str) -> str:
        """What tells it from another, if something does."""
        if self.shape != other.shape:
            return f"shape {other.shape} where minitensor has {self.shape}"
        if not self.elements.size:
            return ""
        a, b = self.elements, other.elements
        if a.dtype.kind in "iu":
            error, most = float(np.mean(a != b)), TIES
        else:
            a, b = a.astype(np.float64), b.astype(np.float64)
            error, most = float(np.max(np.abs(a - b)) / max(np.max(np.abs(a)), 1e-30)), TOLERANCE[dtype]
        return "" if error <= most else f"differs from minitensor by {error:.2g}"


@dataclass(frozen=True)
class Prepared:
    """What a row came to in a worker."""

    seconds: float
    """For the work, once; roughly."""
    results: list[Sample]

    def difference(self, other: Prepared, dtype: str) -> str:
        if len(self.results) != len(other.results):
            return f"{len(other.results)} results where minitensor has {len(self.results)}"
        pairs = zip(self.results, other.results, strict=True)
        return next(filter(None, (a.difference(b, dtype) for a, b in pairs)), "")
