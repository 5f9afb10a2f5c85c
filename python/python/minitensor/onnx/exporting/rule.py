"""The table of rules: how ops of minitensor are written as nodes of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import dtypes
from .builder import Value
from .call import Call

__all__ = ["RULES", "Refused", "Rule", "rule"]

#: Writes a call. Returns its result, or a list of its results.
Function = Callable[[Call], Any]


class Refused(Exception):
    """A rule does not write a call with these arguments. The program of the op may."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Rule:
    """Writes the calls of an op."""

    function: Function
    #: Whether elements are only moved. Other ops compute half floats in float32.
    only_moves: bool

    def apply(self, call: Call) -> list[Value]:
        """Writes a call. Returns its results."""
        results = call.result_dtypes()
        if any(meta.dtype.startswith("complex") for meta in (*call.node.inputs, *call.node.outputs)):
            raise Refused("ONNX has no arithmetic of complex numbers")
        if not self.only_moves:
            call.inputs = [_widened(value) for value in call.inputs]
        found = self.function(call)
        found = found if isinstance(found, list) else [found]
        return [v.cast(dtype) for v, dtype in zip(found, results, strict=True)]


def _widened(value: Any) -> Any:
    if isinstance(value, list):
        return [_widened(item) for item in value]
    return value.cast(dtypes.in_full_precision(value.dtype)) if isinstance(value, Value) else value


#: The rules by the names of ops.
RULES: dict[str, Rule] = {}


def rule(*names: str, only_moves: bool = False) -> Callable[[Function], Function]:
    """Adds a rule for ops."""

    def add(function: Function) -> Function:
        for name in names:
            assert name not in RULES, name
            RULES[name] = Rule(function, only_moves)
        return function

    return add
