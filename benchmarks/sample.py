"""Samples of results, which workers send to the main program to compare the frameworks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .row import Array

SIZE = 10_000
"""The number of elements of an array that are compared."""

TOLERANCE = {"float32": 2e-3, "float64": 1e-7, "bfloat16": 5e-2}
"""The tolerance relative to the largest element. It is large, because it only needs to detect a different operation."""

TIE_TOLERANCE = 0.01
"""The fraction of integers that may differ, because equal elements may be sorted in any order."""


@dataclass(frozen=True)
class Sample:
    """The shape of an array, and some of its elements."""

    shape: tuple[int, ...]
    elements: Array

    @classmethod
    def of(cls, array: Array) -> Sample:
        flat = array.ravel()
        # A prime stride visits all rows and columns.
        at = np.arange(SIZE) * 7919 % flat.size if flat.size > SIZE else np.arange(flat.size)
        return cls(array.shape, flat[at])

    def difference(self, other: Sample, dtype: str) -> str:
        """Returns a description of the difference to another sample, or an empty string."""
        if self.shape != other.shape:
            return f"shape {other.shape} where minitensor has {self.shape}"
        if not self.elements.size:
            return ""
        a, b = self.elements, other.elements
        if a.dtype.kind in "iu":
            error, most = float(np.mean(a != b)), TIE_TOLERANCE
        else:
            a, b = a.astype(np.float64), b.astype(np.float64)
            error, most = float(np.max(np.abs(a - b)) / max(np.max(np.abs(a)), 1e-30)), TOLERANCE[dtype]
        return "" if error <= most else f"differs from minitensor by {error:.2g}"


@dataclass(frozen=True)
class Prepared:
    """The result of `prepare` in a worker."""

    seconds: float
    """The approximate time of one repetition."""
    results: list[Sample]

    def difference(self, other: Prepared, dtype: str) -> str:
        if len(self.results) != len(other.results):
            return f"{len(other.results)} results where minitensor has {len(self.results)}"
        pairs = zip(self.results, other.results, strict=True)
        return next(filter(None, (a.difference(b, dtype) for a, b in pairs)), "")
