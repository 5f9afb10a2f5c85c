"""Axes of arrays."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["normalize_axis_tuple"]


def normalize_axis_tuple(axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Returns the axes counted from the first one. Raises ValueError for an axis that does not exist or occurs
    twice."""
    made = []
    for axis in axes:
        if not -rank <= axis < rank:
            raise ValueError(f"axis {axis} is out of bounds for {rank} dimensions")
        made.append(axis % rank)
    if len(set(made)) < len(made):
        raise ValueError(f"axis {tuple(axes)} contains an axis twice")
    return tuple(made)
