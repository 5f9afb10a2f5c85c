"""Comparison of an IR with its model."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..ir import IR, IRError
from .exporting import arguments

__all__ = ["verify"]


def verify(
    ir: IR, model: torch.nn.Module, inputs: Any, *, rtol: float = 1e-5, atol: float = 1e-5, jit: bool = False
) -> float:
    """Runs an IR and its model. Returns the largest difference of their results and changed buffers.

    `inputs` are arguments of the model. Raises IRError if a result differs by more than `atol + rtol * largest`, where
    `largest` is the largest element of the result. Weights and inputs that the model changes are restored.
    """
    args, named = arguments(inputs)
    given = [t for t in pytree.tree_leaves((args, named)) if isinstance(t, torch.Tensor)]
    program = ir.compile(model) if jit else None
    found, updates = ir.run_with_updates(given, model) if program is None else program.with_updates(given)
    held = dict(model.named_buffers(remove_duplicate=False)) | dict(model.named_parameters(remove_duplicate=False))
    held |= {meta.name: t for meta, t in zip(ir.inputs, given, strict=False)}
    changed = {name: held[name] for name in updates if name in held}
    before = {name: tensor.detach().clone() for name, tensor in changed.items()}
    with torch.no_grad():
        expected = [t.clone() for t in pytree.tree_leaves(model(*args, **named)) if isinstance(t, torch.Tensor)]
        after = [tensor.detach().clone() for tensor in changed.values()]
        for name, tensor in changed.items():
            tensor.copy_(before[name])
    if len(found) != len(expected):
        raise IRError(f"the model has {len(expected)} results, but the IR {ir.name!r} has {len(found)}")
    names = [*(f"result '{meta.name}'" for meta in ir.outputs), *(f"the new value of '{name}'" for name in changed)]
    largest = 0.0
    for name, result, wanted in zip(names, [*found, *(updates[n] for n in changed)], [*expected, *after], strict=True):
        result = torch.as_tensor(result) if isinstance(result, torch.Tensor) else torch.from_dlpack(result)
        if result.shape != wanted.shape or result.dtype != wanted.dtype:
            raise IRError(
                f"{name}: the model has {wanted.dtype} {tuple(wanted.shape)}, the IR has {result.dtype} "
                f"{tuple(result.shape)}"
            )
        kind = torch.complex128 if wanted.is_complex() else torch.float64
        a, b = result.to(kind), wanted.to(kind)
        same = (a == b) | (a.isnan() & b.isnan())
        difference = torch.where(same, 0.0, (a - b).abs())
        scale = b.abs().nan_to_num(0.0, 0.0, 0.0).max().item() if b.numel() else 0.0
        if bool((difference > atol + rtol * scale).any()) or bool(difference.isnan().any()):
            raise IRError(
                f"{name} differs from that of the model by up to {difference.max().item():.3g}; allowed "
                f"are atol={atol} and rtol={rtol}"
            )
        largest = max(largest, difference.max().item() if difference.numel() else 0.0)
    return largest
