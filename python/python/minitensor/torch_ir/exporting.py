"""Models as graphs of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..ir import IRError

__all__ = ["export_model"]


def export_model(
    model: torch.nn.Module,
    inputs: Any,
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
) -> torch.export.ExportedProgram:
    """Returns the graph that `torch.export` makes of a model.

    `inputs` is a tuple of arguments, or a dict of arguments by name. Models and inputs may be on the device "meta".
    `dynamic_shapes` names the sizes that remain symbols, as for `torch.export.export`.

    Raises IRError if the model cannot be exported, for example if its control flow depends on elements.
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"a model must be a torch.nn.Module, got {type(model).__name__}")
    args, named = arguments(inputs, kwargs)
    try:
        return torch.export.export(model, args, named, dynamic_shapes=dynamic_shapes, strict=strict)
    except Exception as error:
        raise IRError(
            f"PyTorch cannot export {type(model).__name__}: {type(error).__name__}: {error}\nControl flow that depends "
            "on elements must be torch.where or a module of its own"
        ) from error


def arguments(inputs: Any, kwargs: Mapping[str, Any] | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the positional and the named arguments."""
    named = dict(kwargs or {})
    if isinstance(inputs, Mapping):
        return (), {**inputs, **named}
    if isinstance(inputs, torch.Tensor):
        return (inputs,), named
    if not isinstance(inputs, (tuple, list)):
        raise TypeError(f"inputs must be a tuple of arguments or a dict by name, got {type(inputs).__name__}")
    return tuple(inputs), named
