"""A call of an op, or of its gradient of any order, as a function of its tensors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from .._definitions import Definition, Role, define
from .._minitensor import _decode_call


class Call(NamedTuple):
    """The call that a primitive computes. The strings become attributes of compiled programs.

    The function of order 0 is the op. The function of order k takes a cotangent for each result of the function of
    order k - 1, then the tensors of that function, and returns gradients of the latter.
    """

    #: The op and its attributes, encoded.
    text: str
    #: `1` for each tensor that is passed, `2` for one that is converted to 64 bits, `0` for each absent one. An absent
    #: cotangent is zero.
    present: str
    #: The tensors whose gradients are returned: a word of `0` and `1` for each order, separated by commas.
    wrt: str = ""
    #: The number of ops that had the name before, in this process. JAX keeps the shapes of the results of a call, which
    #: another op of the name may not have. It is no part of compiled programs.
    version: int = 0

    @property
    def words(self) -> list[str]:
        """The words of `wrt`."""
        return self.wrt.split(",") if self.wrt else []

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of a primitive."""
        return self._asdict()

    @property
    def definition(self) -> Definition:
        """The definition of the op."""
        return define(decode(self.text)[0])

    @property
    def attributes(self) -> dict[str, Any]:
        """All attributes of the op."""
        return decode(self.text)[1]

    def positions(self) -> list[int]:
        """The positions of the tensors that are passed among all tensors."""
        return [i for i, flag in enumerate(self.present) if flag != "0"]

    def wanted(self) -> list[int]:
        """For each gradient that is returned, the position of its tensor among those that are passed."""
        word = self.words[-1]
        first = len(self.present) - len(word)
        ranks = {position: rank for rank, position in enumerate(self.positions())}
        return [ranks[first + i] for i, flag in enumerate(word) if flag == "1"]

    def gradient(self, cotangents: Sequence[bool], mask: Sequence[bool]) -> Call:
        """The gradient of this function.

        `cotangents` tells which cotangents are passed, `mask` for which of the passed tensors gradients are returned.
        """
        word = ["0"] * len(self.present)
        for position, is_wanted in zip(self.positions(), mask, strict=True):
            word[position] = "1" if is_wanted else "0"
        present = flags(cotangents) + self.present
        return self._replace(present=present, wrt=",".join([*self.words, "".join(word)]))

    def derivative(self, results: Sequence[bool], mask: Sequence[bool]) -> Call:
        """The directional derivative of this function, as the gradient of its gradient.

        A gradient is linear in the cotangents, so its own gradient with respect to them maps tangents to tangents. It
        takes tangents of the tensors in `mask`, a zero for each of the `results` that has derivatives, and the tensors.
        """
        gradient = self.gradient(results, mask)
        tangents = [True] * sum(mask)
        return gradient.gradient(tangents, [True] * sum(results) + [False] * len(mask))

    def roles(self) -> list[Role]:
        """The role of each tensor that is passed."""
        return [self._all_roles()[0][position] for position in self.positions()]

    def result_roles(self, count: int) -> list[Role]:
        """The role of each of `count` results."""
        return self._all_roles()[1] if self.wrt else [Role(True, k) for k in range(count)]

    def _all_roles(self) -> tuple[list[Role], list[Role]]:
        # The functions of the orders from 0 have this many tensors.
        counts = [*(len(word) for word in self.words), len(self.present)]
        tensors = [Role(False, i) for i in range(counts[0])]
        results = [Role(True, k) for k in range(counts[1] - counts[0])] if self.wrt else []
        for word in self.words:
            found = [tensors[i] for i, flag in enumerate(word) if flag == "1"]
            tensors, results = results + tensors, found
        return tensors, results

    def differentiated(self) -> set[Role]:
        """The tensors of the op of which any order takes a gradient."""
        found = set[Role]()
        for order, word in enumerate(self.words):
            lower = self._replace(present=word, wrt=",".join(self.words[:order]))
            found |= {lower._all_roles()[0][i] for i, flag in enumerate(word) if flag == "1"}
        return found


def flags(values: Sequence[bool]) -> str:
    """Booleans as a word of `0` and `1`."""
    return "".join("1" if value else "0" for value in values)


@functools.lru_cache(4096)
def decode(text: str) -> tuple[str, dict[str, Any]]:
    """The name of the op and the attributes of an encoded call."""
    return _decode_call(text)
