"""The table of operators: a rule computes an operator by calls of the ops of minitensor."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._minitensor import Tensor
from . import values
from .error import OnnxError
from .narrow import NarrowTensor
from .values import Value, is_text

__all__ = ["Rule", "find", "first_version", "rule"]

#: Parameters that are neither inputs nor attributes: the node itself, and the values that its subgraphs may read.
SPECIAL = ("node", "scope")

#: How an argument is converted, by the first word of the annotation of its parameter.
_CONVERSIONS: dict[str, Callable[[Value], Value]] = {
    "Tensor": values.tensor,
    "Fixed": values.tensor,
    "Known": values.known,
    "Text": values.text,
    "Value": lambda value: value,
}


class Rule:
    """A function that computes an operator from version `since` of its domain on.

    Its positional parameters are the inputs, in order, and its keywords are the attributes, with their defaults. The
    annotation of an input says what it takes: `Tensor`; `Fixed` for a tensor that is not trained; `Known` for numbers
    that must be known, such as a shape; `Text` for strings; `Value` for anything.
    """

    def __init__(self, function: Callable[..., Any], since: int, moves: bool) -> None:
        self.since = since
        self.function = _moving(function) if moves else function
        inputs, attributes, self.rest = [], {}, None
        for parameter in inspect.signature(function).parameters.values():
            kind = str(parameter.annotation).partition(" ")[0]
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                attributes[parameter.name] = parameter.default
            elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                self.rest = kind
            else:
                inputs.append((parameter.name, kind, parameter.default is inspect.Parameter.empty))
        self.special = [name for name in SPECIAL if name in attributes]
        self.attributes = {name: value for name, value in attributes.items() if name not in SPECIAL}
        #: The name of each input, what it takes, and whether it must be given.
        self.inputs = inputs
        # Operators that move elements also take strings and narrow tensors; they are converted when they run.
        self._is_moving = moves

    def kind(self, position: int) -> str:
        """Returns what an input takes."""
        return self.inputs[position][1] if position < len(self.inputs) else self.rest or "Value"

    def arguments(self, given: list[Value]) -> list[Value]:
        """Converts the inputs of a call."""
        if len(given) > len(self.inputs) and self.rest is None:
            raise OnnxError(f"expected at most {len(self.inputs)} inputs, got {len(given)}")
        found = []
        for k, value in enumerate(given):
            kind = self.kind(k)
            if self._is_moving and (is_text(value) or isinstance(value, NarrowTensor)):
                found.append(value)
            elif value is None and kind != "Value":
                if k >= len(self.inputs) or self.inputs[k][2]:
                    name = f"'{self.inputs[k][0]}'" if k < len(self.inputs) else str(k)
                    raise OnnxError(f"the input {name} is missing")
                found.append(None)
            else:
                try:
                    found.append(_CONVERSIONS[kind](value))
                except OnnxError as error:
                    raise OnnxError(f"input {k}: {error}") from None
        for name, _, is_required in self.inputs[len(given) :]:
            if is_required:
                raise OnnxError(f"the input '{name}' is missing")
        return found


def _moving(function: Callable[..., Any]) -> Callable[..., Any]:
    """Extends a function that moves elements to strings, and to tensors of narrow formats."""

    def compute(*inputs: Value, **attributes: Any) -> Any:
        narrow = next((x for x in inputs if isinstance(x, NarrowTensor)), None)
        if narrow is not None:
            plain = [x.values if isinstance(x, NarrowTensor) else x for x in inputs]
            return _each(function(*plain, **attributes), lambda t: NarrowTensor(t, narrow.format))
        texts = [x for x in inputs if is_text(x)]
        if not texts:
            return function(*inputs, **attributes)
        # The positions of the strings are moved, in a row of all strings.
        row = np.concatenate([x.reshape(-1) for x in texts])
        starts = iter(np.cumsum([0, *(x.size for x in texts)]).tolist())
        positions = [
            values.tensor(next(starts) + np.arange(x.size).reshape(x.shape)) if is_text(x) else x for x in inputs
        ]
        return _each(function(*positions, **attributes), lambda t: row[t.numpy()])

    return compute


def _each(result: Any, change: Callable[[Tensor], Any]) -> Any:
    if isinstance(result, (list, tuple)):
        return type(result)(_each(item, change) for item in result)
    return change(result)


#: The rules of each operator, by domain and name, from the latest version to the first.
RULES: dict[tuple[str, str], list[Rule]] = {}


def rule(
    *names: str, since: int = 1, domain: str = "", moves: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds a rule for operators. `moves` says that it only moves elements of its inputs."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            known = RULES.setdefault((domain, name), [])
            assert all(other.since != since for other in known), name
            known.append(Rule(function, since, moves))
            known.sort(key=lambda other: -other.since)
        return function

    return add


@functools.cache
def _fill() -> None:
    """Fills the table: each module of `rules` has those of a family."""
    from . import rules

    for module in pkgutil.iter_modules(rules.__path__):
        importlib.import_module(f"{rules.__name__}.{module.name}")


def find(domain: str, name: str, version: int) -> Rule | None:
    """Returns the rule of an operator in a version of its domain; None if there is none."""
    _fill()
    return next((found for found in RULES.get((domain, name), []) if found.since <= version), None)


def first_version(domain: str, name: str) -> int | None:
    """Returns the first version for which an operator has a rule; None if there is none."""
    _fill()
    found = RULES.get((domain, name))
    return found[-1].since if found else None
