"""`Condition`: a requirement on an argument of an operator, with its error message."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..error import OnnxError
from ..graph import Node
from ..values import Value

__all__ = [
    "Arguments",
    "Condition",
    "an_axis_of",
    "at_least",
    "axes",
    "axis",
    "divides",
    "equals",
    "meets",
    "one_of",
    "permutation",
    "ranks",
    "require",
    "same_length",
]

#: Inputs with at most this many elements are read as numbers.
_MOST_NUMBERS = 64

#: Returns None if the argument is valid, and otherwise a description of valid arguments.
Expectation = Callable[[Any, "Arguments"], str | None]


class Arguments:
    """The attributes and inputs of a call, by their names in the rule. Before a run, the inputs are not known."""

    def __init__(self, node: Node, defaults: dict[str, Any], names: Sequence[str], inputs: Sequence[Value]) -> None:
        self.node = node
        self.inputs = inputs
        self._defaults = defaults
        self._names = names

    def __getitem__(self, name: str) -> Any:
        """The value of an attribute, or of an input; None if it is not given."""
        found = self.node.attributes.get(name, self._defaults.get(name))
        if found is None and name in self._names:
            at = self._names.index(name)
            found = self.inputs[at] if at < len(self.inputs) else None
        if isinstance(found, np.ndarray) and found.size <= _MOST_NUMBERS:
            return found.tolist()
        return list(found) if isinstance(found, tuple) else found

    def shape(self, position: int = 0) -> tuple[int, ...]:
        """The shape of an input. An input that is not given, or a sequence, has none."""
        found = self.inputs[position] if position < len(self.inputs) else None
        return tuple(getattr(found, "shape", ()))

    def rank(self, position: int = 0) -> int:
        """The number of axes of an input."""
        return len(self.shape(position))


@dataclass(frozen=True)
class Condition:
    """A condition on an argument. One on an input, or on an attribute and the shapes of inputs, is of a run."""

    name: str
    expectation: Expectation
    is_of_run: bool

    def problem(self, arguments: Arguments) -> str | None:
        """Returns the error message; None if the argument is valid or absent."""
        value = arguments[self.name]
        if value is None:
            return None
        expected = self.expectation(value, arguments)
        if expected is None:
            return None
        shape = getattr(value, "shape", None)
        shown = f"{value!r}" if shape is None else f"of shape {tuple(shape)}"
        kind = "attribute" if self.name in arguments.node.attributes or self.name not in arguments._names else "input"
        return f"the {kind} '{self.name}' is {shown}; expected {expected}"


def require(conditions: Iterable[Condition], arguments: Arguments) -> None:
    """Raises OnnxError if conditions are not met."""
    problems = [text for text in (condition.problem(arguments) for condition in conditions) if text is not None]
    if problems:
        raise OnnxError(f"{', and '.join(problems)}; correct the node, or export the model again")


def meets(name: str, expectation: Expectation, is_of_run: bool = True) -> Condition:
    """A condition with its own expectation."""
    return Condition(name, expectation, is_of_run)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def at_least(name: str, least: int, is_of_run: bool = False) -> Condition:
    """A number, or each number of a list, has a lower bound."""

    def expected(value: Any, _: Arguments) -> str | None:
        what = "numbers of" if isinstance(value, list) else "a number of"
        return None if all(n >= least for n in _list(value)) else f"{what} at least {least}"

    return meets(name, expected, is_of_run)


def one_of(name: str, *choices: Any) -> Condition:
    """An attribute has one of these values."""
    shown = ", ".join(map(str, choices))
    return meets(name, lambda value, _: None if value in choices else shown, False)


def an_axis_of(rank: int) -> Expectation:
    """The expectation of an axis, or of several. A tensor without axes has a row of one element."""
    most = max(rank, 1)

    def expected(value: Any, _: Arguments) -> str | None:
        is_inside = all(-most <= k < most for k in _list(value))
        return None if is_inside else f"an axis from {-most} to {most - 1} of {rank} axes"

    return expected


def axis(name: str = "axis", position: int = 0, added: int = 0) -> Condition:
    """An axis of an input, or of a result with more axes."""
    return meets(name, lambda value, arguments: an_axis_of(arguments.rank(position) + added)(value, arguments))


def axes(name: str = "axes", *, is_distinct: bool = True, adds: bool = False) -> Condition:
    """A list of axes of the first input, or of a result to which they are added."""

    def expected(value: Any, arguments: Arguments) -> str | None:
        given = [int(k) for k in _list(value)]
        rank = arguments.rank() + (len(given) if adds else 0)
        most = max(rank, 1)
        is_inside = all(-most <= k < most for k in given)
        if is_inside and (not is_distinct or len({k % most for k in given}) == len(given)):
            return None
        return f"{'different ' if is_distinct else ''}axes from {-most} to {most - 1} of {rank} axes"

    return meets(name, expected)


def permutation(name: str) -> Sequence[Condition]:
    """A list has all axes of the first input."""

    def expected(value: Any, _: Arguments) -> str | None:
        return None if sorted(value) == list(range(len(value))) else f"a permutation of 0 to {len(value) - 1}"

    def of_run(value: Any, arguments: Arguments) -> str | None:
        rank = arguments.rank()
        return None if len(value) == rank else f"a permutation of the {rank} axes of the input"

    return meets(name, expected, False), meets(name, of_run)


def same_length(name: str, count: Callable[[Arguments], int], what: str, times: int = 1) -> Condition:
    """A list has a number for each of some things, or several."""

    def expected(value: Any, arguments: Arguments) -> str | None:
        wanted = times * count(arguments)
        found = math.prod(value.shape) if hasattr(value, "shape") else len(_list(value))
        numbers, each = "number" if wanted == 1 else "numbers", "one" if times == 1 else times
        return None if found == wanted else f"{wanted} {numbers}, {each} for each {what}"

    return meets(name, expected)


def equals(name: str, wanted: Callable[[Arguments], Any], what: str) -> Condition:
    """An argument agrees with the inputs."""

    def expected(value: Any, arguments: Arguments) -> str | None:
        right = wanted(arguments)
        return None if right is None or value == right else f"{right}, {what}"

    return meets(name, expected)


def divides(name: str, size: Callable[[Arguments], int | None], what: str) -> Condition:
    """A positive number divides a size of an input."""

    def expected(value: Any, arguments: Arguments) -> str | None:
        n = size(arguments)
        return None if n is None or value < 1 or n % value == 0 else f"a divisor of {n}, {what}"

    return meets(name, expected)


def ranks(name: str, position: int, least: int, most: int, what: str) -> Condition:
    """An input has a number of axes."""

    def expected(_: Any, arguments: Arguments) -> str | None:
        return None if least <= arguments.rank(position) <= most else what

    return meets(name, expected)
