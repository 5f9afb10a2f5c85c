"""The argument `wrt` of gradient ops: which tensors are given, and which gradients are wanted.

PyTorch's autograd does not see tensors in a list that also has None. Gradient ops therefore take a list of the given
tensors, and `wrt` tells which they are. `"01_111_1101"` has a word for each order of the gradient, with one digit for
each tensor whose gradient is wanted or not, and a last word with one digit for each tensor that is given or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

Tensors = list[Tensor | None]


class Selection(NamedTuple):
    """A decoded `wrt`."""

    #: For each order, the lowest first, whether the gradient of each tensor is wanted.
    orders: Sequence[Sequence[bool]]
    #: Whether each tensor is given.
    given: list[bool]

    @staticmethod
    def decode(wrt: str) -> Selection:
        """Reads the argument."""
        *orders, given = [flags(word) for word in wrt.split("_")]
        return Selection(orders, given)

    def encode(self) -> str:
        """Writes the argument."""
        return "_".join([digits(order) for order in [*self.orders, self.given]])

    def complete(self, tensors: Sequence[Tensor]) -> Tensors:
        """All tensors, with None for those that are not given."""
        present = iter(tensors)
        return [next(present) if given else None for given in self.given]

    def wanted(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The tensors whose gradients the op returns."""
        order = self.orders[-1]
        last = self.complete(tensors)[len(self.given) - len(order) :]
        return [t for t, is_wanted in zip(last, order, strict=True) if is_wanted and t is not None]


def flags(word: str) -> list[bool]:
    """The flags of a word of digits."""
    return [digit == "1" for digit in word]


def digits(flags: Sequence[bool]) -> str:
    """The flags as a word of digits."""
    return "".join(["1" if flag else "0" for flag in flags])
