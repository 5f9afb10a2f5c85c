"""`Rows`: where a call of a row op has its rows, and how its tensors are brought there."""

from __future__ import annotations

from collections.abc import Sequence

from . import reductions
from .builder import Builder, Value

__all__ = ["Rows"]


class Rows:
    """The axes of rows. Tensors keep their axes, and numbers per row have size 1 there.

    If the position in a row matters, several axes become one, the last. If there are no axes, every element is a row.
    """

    def __init__(self, builder: Builder, axes: Sequence[int], rank: int, keepdims: bool, needs_order: bool) -> None:
        self.builder = builder
        #: The axes of the op, counted from the last.
        self._given = list(axes)
        self._rank = rank
        self._keepdims = keepdims
        self._is_flat = needs_order and len(self._given) > 1
        #: The axes of the rows of values, counted from the last.
        self.axes = [-1] if self._is_flat or not self._given else self._given
        #: An input that has whole rows.
        self.sample: Value | None = None
        self._whole: Value | None = None

    @property
    def _order(self) -> list[int]:
        axes = [axis + self._rank for axis in self._given]
        return [k for k in range(self._rank) if k not in axes] + axes

    def rows(self, x: Value, rank: int) -> Value:
        """An input of rows with this number of dimensions."""
        builder = self.builder
        if not self._given:
            x = builder.node("Unsqueeze", x, builder.integers([-1]))
        elif self._is_flat:
            if rank < self._rank:
                x = builder.node("Unsqueeze", x, builder.integers(range(self._rank - rank)))
            x = self._whole = builder.node("Transpose", x, perm=self._order)
            batch = self._rank - len(self._given)
            x = builder.node("Reshape", x, builder.integers([0] * batch + [-1]))
        self.sample = x
        return x

    def numbers(self, x: Value) -> Value:
        """An input with one number per row."""
        if not self._given or self._is_flat:
            x = self._squeezed(x) if self._keepdims and self._given else x
            return self.builder.node("Unsqueeze", x, self.builder.integers([-1]))
        return x if self._keepdims else self.builder.node("Unsqueeze", x, self.builder.integers(self._given))

    def restored(self, x: Value, is_row: bool) -> Value:
        """A result of the op, from a value that has its rows, or one number per row."""
        builder = self.builder
        if not self._given:
            return builder.node("Squeeze", x, builder.integers([-1]))
        if self._is_flat:
            if not is_row:
                x = builder.node("Squeeze", x, builder.integers([-1]))
                return builder.node("Unsqueeze", x, builder.integers(self._given)) if self._keepdims else x
            assert self._whole is not None
            x = builder.node("Reshape", x, builder.shape(self._whole))
            order = self._order
            return builder.node("Transpose", x, perm=[order.index(k) for k in range(self._rank)])
        return x if is_row or self._keepdims else self._squeezed(x)

    def _squeezed(self, x: Value) -> Value:
        return self.builder.node("Squeeze", x, self.builder.integers(self._given))

    def count(self) -> Value:
        """The number of elements of a row, as int64."""
        assert self.sample is not None
        builder = self.builder
        sizes = builder.node("Gather", builder.shape(self.sample), builder.integers(self.axes))
        return reductions.reduced("ReduceProd", sizes, [0], False)

    def position(self, dtype: str) -> Value:
        """The index of each element in its row."""
        builder = self.builder
        zero, one = builder.constant(0, "int64"), builder.constant(1, "int64")
        found = builder.node("Range", zero, self.count(), one).cast(dtype)
        after = -self.axes[0] - 1
        return builder.node("Unsqueeze", found, builder.integers(range(1, after + 1))) if after else found

    def of_rows(self, x: Value, is_row: bool) -> Value:
        """A value as rows: a number per row becomes equal elements."""
        if is_row:
            return x
        assert self.sample is not None
        return self.builder.node("Expand", x, self.builder.shape(self.sample))

    def first(self, x: Value) -> Value:
        """The first elements of rows."""
        builder = self.builder
        zeros, ones = builder.integers([0] * len(self.axes)), builder.integers([1] * len(self.axes))
        return builder.node("Slice", x, zeros, ones, builder.integers(self.axes))
