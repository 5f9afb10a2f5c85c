"""`Forest`: decision trees, whose rows of nodes are tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .... import ops
from ..error import OnnxError
from ..values import Known, Tensor, tensor

__all__ = ["LEAF", "MEMBER", "MODES", "Forest", "Weights", "members"]

#: How a node compares a feature with its threshold.
MODES: tuple[Callable[..., Tensor], ...] = (ops.le, ops.lt, ops.ge, ops.gt, ops.eq, ops.ne)
#: The mode of a node that tests whether a feature is a member of a set.
MEMBER = len(MODES)
#: The mode of a leaf.
LEAF = MEMBER + 1


@dataclass(frozen=True)
class Forest:
    """Decision trees. Each array has a number for each node; a leaf follows itself."""

    roots: Known
    modes: Known
    features: Known
    thresholds: Known
    #: The nodes that follow if the comparison is true, and if it is false.
    if_true: Known
    if_false: Known
    #: Whether the comparison of NaN is true.
    takes_nan: Known
    #: The sets of the nodes that test membership.
    members: Mapping[int, Sequence[float]] = field(default_factory=dict)

    @cached_property
    def depth(self) -> int:
        """The most steps from a root to a leaf."""
        count = len(self.modes)
        for following in (self.roots, self.if_true, self.if_false):
            if following.size and not 0 <= int(following.min()) <= int(following.max()) < count:
                raise OnnxError(f"a tree names a node that does not exist; expected 0 to {count - 1}")
        level, steps, visited = self.roots[self.modes[self.roots] != LEAF], 0, 0
        while level.size:
            visited += level.size
            if visited > count:
                raise OnnxError("a node of a tree follows two nodes, or the tree has a cycle; expected trees")
            following = np.concatenate([self.if_true[level], self.if_false[level]])
            level, steps = following[self.modes[following] != LEAF], steps + 1
        return steps

    def leaves(self, x: Tensor) -> Tensor:
        """Returns the leaf of each tree for each row."""
        nodes = {name: tensor(getattr(self, name)) for name in ("features", "if_true", "if_false")}
        thresholds = ops.astype(tensor(self.thresholds), x.dtype)
        kinds = [int(mode) for mode in np.unique(self.modes) if mode != LEAF]
        modes, takes_nan = tensor(self.modes), tensor(self.takes_nan) if self.takes_nan.any() else None
        at = ops.expand(tensor(self.roots), [x.shape[0], len(self.roots)])
        for _ in range(self.depth):
            value = ops.gather(x, ops.take(nodes["features"], at, 0), 1)
            threshold = ops.take(thresholds, at, 0)
            mode = ops.take(modes, at, 0) if len(kinds) > 1 else None
            found = None
            for kind in kinds:
                test = self._is_member(value, at) if kind == MEMBER else MODES[kind](value, threshold)
                found = test if found is None or mode is None else ops.where(ops.eq(mode, kind), test, found)
            assert found is not None
            if takes_nan is not None:
                found = ops.logical_or(found, ops.logical_and(ops.isnan(value), ops.take(takes_nan, at, 0)))
            at = ops.where(found, ops.take(nodes["if_true"], at, 0), ops.take(nodes["if_false"], at, 0))
        return at

    def _is_member(self, value: Tensor, at: Tensor) -> Tensor:
        found = ops.lt(at, 0)
        for node, numbers in self.members.items():
            is_here = ops.eq(at, node)
            for number in numbers:
                found = ops.logical_or(found, ops.logical_and(is_here, ops.eq(value, float(number))))
        return found


def members(modes: Known, values: Sequence[float]) -> dict[int, list[float]]:
    """Returns the set of each node that tests membership. NaN separates the sets."""
    sets: list[list[float]] = [[]]
    for value in values:
        if math.isnan(value):
            sets.append([])
        else:
            sets[-1].append(value)
    nodes: list[int] = [k for k, mode in enumerate(modes.tolist()) if mode == MEMBER]
    if len(nodes) > len(sets):
        raise OnnxError(f"{len(nodes)} nodes test membership, but there are {len(sets)} sets")
    return dict(zip(nodes, sets, strict=False))


@dataclass(frozen=True)
class Weights:
    """The weights of the leaves of a forest, for each target."""

    leaves: Known
    targets: Known
    values: Known
    #: The numbers of nodes and of targets.
    shape: tuple[int, int]

    def _table(self, add: Any, neutral: float) -> Tensor:
        for found, count in ((self.leaves, self.shape[0]), (self.targets, self.shape[1])):
            if found.size and not 0 <= int(found.min()) <= int(found.max()) < count:
                raise OnnxError(f"a weight is of the leaf or target {found.max()}; expected at most {count - 1}")
        table = np.full(self.shape, neutral, dtype=self.values.dtype)
        add.at(table, (self.leaves, self.targets), self.values)
        return tensor(table)

    def total(self, at: Tensor) -> Tensor:
        """Returns the sums over trees."""
        return ops.sum(ops.take(self._table(np.add, 0.0), at, 0), 1)

    def least(self, at: Tensor) -> Tensor:
        """Returns the least over trees; 0 where no leaf has a weight."""
        return _reached(ops.amin(ops.take(self._table(np.minimum, math.inf), at, 0), 1))

    def greatest(self, at: Tensor) -> Tensor:
        """Returns the greatest over trees; 0 where no leaf has a weight."""
        return _reached(ops.amax(ops.take(self._table(np.maximum, -math.inf), at, 0), 1))


def _reached(x: Tensor) -> Tensor:
    return ops.where(ops.isinf(x), 0.0, x)
