"""Axes of arrays."""

from __future__ import annotations

from collections.abc import Iterable

from numpy.exceptions import AxisError

__all__ = ["normalize_axis_tuple"]


def normalize_axis_tuple(axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Returns the axes counted from the first one. Raises AxisError for an axis that does not exist, and ValueError for
    one that occurs twice."""
    made = []
    for axis in axes:
        if not -rank <= axis < rank:
            raise AxisError(axis, rank)
        made.append(axis % rank)
    if len(set(made)) < len(made):
        raise ValueError(f"axis {tuple(axes)} contains an axis twice")
    return tuple(made)
