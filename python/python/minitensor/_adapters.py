"""Adapters for op functions that take the inputs as a list, or return gradients by the ids of the inputs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ._minitensor import BackwardContext

__all__ = ["by_input_id", "with_separate_inputs"]

_Function = Callable[..., Any]


def _parameters(function: object) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters) if callable(function) else {}
    except ValueError:
        return {}


def with_separate_inputs(function: _Function) -> _Function:
    """Converts `function(inputs, **attributes)` to `function(*inputs, **attributes)`; returns others unchanged."""
    first = next(iter(_parameters(function).values()), None)
    if first is None or first.name != "inputs" or first.kind is first.VAR_POSITIONAL:
        return function

    @functools.wraps(function)
    def call_with_list(*inputs: Any, **attributes: Any) -> Any:
        return function(list(inputs), **attributes)

    return call_with_list


def by_input_id(function: _Function, op: str) -> _Function:
    """Converts a gradient function with a parameter `input_ids`, which returns a dict, to `function(ctx, *grads)`."""
    if "input_ids" not in _parameters(function):
        return function

    @functools.wraps(function)
    def backward(ctx: BackwardContext, *grads: Any) -> Any:
        ids = list(range(len(ctx.inputs)))
        shapes = [None if t is None else t.shape for t in ctx.inputs]
        dtypes = [None if t is None else t.dtype for t in ctx.inputs]
        devices = [None if t is None else t.device for t in ctx.inputs]
        given = function(grads[0] if len(grads) == 1 else grads, ids, shapes, dtypes, devices)
        if not isinstance(given, dict):
            raise TypeError(
                f"op '{op}': a backward function that takes input_ids must return a dict of gradients by input id, "
                f"got {type(given).__name__}"
            )
        if unknown := [n for n in given if n not in ids]:
            raise ValueError(f"op '{op}': backward returned a gradient for {unknown[0]!r}, which is not in input_ids")
        return tuple(given.get(n) for n in ids)

    return backward
