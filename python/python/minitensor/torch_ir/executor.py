"""Registered executors, which take precedence over minitensor and PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir import OpNode
from ..ir.step import PROVIDERS, Step, resolved
from .ops.registry import get_execution_fn

__all__ = ["install", "registered"]


def registered(node: OpNode) -> Step | None:
    """Returns how the registered executor computes a call; None if there is none."""
    function = get_execution_fn(node.op_type)
    if function is None:
        return None

    def compute(inputs: Sequence[Any], symbols: Mapping[str, int]) -> Any:
        attrs = {name: resolved(value, inputs, symbols) for name, value in node.attrs.items()}
        return function(list(inputs), attrs)

    return Step("registered", "torch", compute)


def install() -> None:
    """Makes runs ask for registered executors."""
    if registered not in PROVIDERS:
        PROVIDERS.insert(0, registered)
