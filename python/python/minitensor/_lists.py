"""Functions of an op that take its inputs as a list, and name gradients by the inputs' numbers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ._minitensor import BackwardContext

__all__ = ["by_number", "from_list"]

_Function = Callable[..., Any]


def _parameters(function: object) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters) if callable(function) else {}
    except ValueError:
        return {}


def from_list(function: _Function) -> _Function:
    """`function(inputs, **attributes)` as `function(*inputs, **attributes)`; others stay what they are."""
    first = next(iter(_parameters(function).values()), None)
    if first is None or first.name != "inputs" or first.kind is first.VAR_POSITIONAL:
        return function

    @functools.wraps(function)
    def spread(*inputs: Any, **attributes: Any) -> Any:
        return function(list(inputs), **attributes)

    return spread


def by_number(function: _Function, op: str) -> _Function:
    """A gradient with a parameter `input_ids`, which gives a dict by these, as `function(ctx, *grads)`."""
    if "input_ids" not in _parameters(function):
        return function

    @functools.wraps(function)
    def backward(ctx: BackwardContext, *grads: Any) -> Any:
        numbers = list(range(len(ctx.inputs)))
        shapes = [None if t is None else t.shape for t in ctx.inputs]
        dtypes = [None if t is None else t.dtype for t in ctx.inputs]
        devices = [None if t is None else t.device for t in ctx.inputs]
        given = function(grads[0] if len(grads) == 1 else grads, numbers, shapes, dtypes, devices)
        if not isinstance(given, dict):
            raise TypeError(
                f"op '{op}': its backward takes input_ids, so it must give a dict of gradients by these, "
                f"got {type(given).__name__}"
            )
        if unknown := [n for n in given if n not in numbers]:
            raise ValueError(f"op '{op}': its backward gave a gradient for {unknown[0]!r}, which is none of input_ids")
        return tuple(given.get(n) for n in numbers)

    return backward
