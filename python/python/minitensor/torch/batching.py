"""`torch.vmap` of ops: from the shape clause where it has batch dimensions, otherwise one call for each example."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .op import Op

Rule = Callable[..., Any]


def batch(op: Op, call: Callable[..., Any]) -> Rule:
    """The rule of an op, which `call` calls."""
    definition = op.definition
    match definition.shape:
        case ("broadcast",):
            cores: list[int | None] | None = [0] * len(definition.inputs)
        case ("core", inputs, outputs, None) if all(has_batch for has_batch, _ in outputs):
            cores = [len(dims) if has_batch else None for has_batch, dims in inputs]
        case _:
            cores = None

    def rule(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        count = len(definition.inputs)
        args = definition.complete(args)
        in_dims = (*in_dims, *[None] * (len(args) - len(in_dims)))
        dims = in_dims[:count]
        can_batch = cores is not None and not definition.is_variadic
        if can_batch and cores is not None and all(dim is None or cores[k] is not None for k, dim in enumerate(dims)):
            tensors = aligned(args[:count], dims, cores)
            result = call(*tensors, *args[count:])
            return result, 0 if isinstance(result, torch.Tensor) else tuple(0 for _ in result)
        return one_by_one(info, in_dims, call, args)

    return rule


def aligned(tensors: tuple[Any, ...], dims: tuple[Any, ...], cores: list[int | None]) -> list[Any]:
    """The tensors with the batch as their first dimension. All get the same number of dimensions before their cores."""
    ranks = [
        t.dim() - (core or 0) - (dim is not None)
        for t, dim, core in zip(tensors, dims, cores, strict=True)
        if t is not None and core is not None
    ]
    most = max(ranks, default=0)
    out = []
    for t, dim, core in zip(tensors, dims, cores, strict=True):
        if t is not None and dim is not None:
            t = t.movedim(dim, 0)
            missing = most - (t.dim() - 1 - (core or 0))
            t = t.reshape(t.shape[0], *[1] * missing, *t.shape[1:])
        out.append(t)
    return out


def batch_gradient(op: Op) -> Rule:
    """The rule of the gradient of an op."""

    def rule(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        return one_by_one(info, in_dims, op.gradient_op, args)

    return rule


def one_by_one(info: Any, in_dims: tuple[Any, ...], call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Calls the op for each example, and stacks the results."""
    results = [
        call(*(example(arg, dim, k) for arg, dim in zip(args, in_dims, strict=True))) for k in range(info.batch_size)
    ]
    first = results[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(results), 0
    stacked = [torch.stack(parts) for parts in zip(*results, strict=True)]
    kind = list if isinstance(first, list) else tuple
    return kind(stacked), kind([0] * len(stacked))


def example(arg: Any, dim: Any, k: int) -> Any:
    """One example of an argument."""
    if isinstance(dim, list | tuple):
        return [example(a, d, k) for a, d in zip(arg, dim, strict=True)]
    return arg if dim is None or arg is None else arg.select(dim, k)
