"""`torch.vmap` of ops: from the shape clause where it has batch dimensions, otherwise one call for each example."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .._definitions import Role

if TYPE_CHECKING:
    from .op import Op

Rule = Callable[..., Any]


def batch(op: Op, call: Callable[..., Any]) -> Rule:
    """The rule of an op, which `call` calls."""
    definition = op.definition
    shapes = definition.shapes
    can_batch = shapes is not None and shapes.is_batched and not definition.is_variadic

    def rule(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        count = len(definition.inputs)
        args = definition.all_arguments(args)
        in_dims = (*in_dims, *[None] * (len(args) - len(in_dims)))
        tensors, dims = args[:count], in_dims[:count]
        if not can_batch or shapes is None:
            return one_by_one(info, in_dims, call, args)
        own = [shapes.of(Role(False, k)) for k in range(count)]
        # A tensor whose own dimensions are too few must not use the batch as one of them.
        is_wrong = [
            t is not None and t.dim() - (dim is not None) < (1 if shapes.axis else len(of.core))
            for t, dim, of in zip(tensors, dims, own, strict=True)
        ]
        if any(is_wrong) or any(dim is not None and not of.has_batch for dim, of in zip(dims, own, strict=True)):
            return one_by_one(info, in_dims, call, args)
        attributes = args[count:]
        if shapes.axis is not None:
            ranks = {t.dim() - (dim is not None) for t, dim in zip(tensors, dims, strict=True) if t is not None}
            attrs = definition.complete(definition.attributes(args))
            if len(ranks) != 1 or not shapes.axis.is_valid(attrs, next(iter(ranks))):
                return one_by_one(info, in_dims, call, args)
            moved = shapes.axis.from_the_end(attrs, ranks.pop())[shapes.axis.attribute]
            names = [a.name for a in definition.attrs]
            attributes = tuple(
                moved if name == shapes.axis.attribute else value for name, value in zip(names, attributes, strict=True)
            )
            cores: list[int | None] = [0] * count
        else:
            cores = [len(of.core) if of.has_batch else None for of in own]
        result = call(*aligned(tensors, dims, cores), *attributes)
        return result, 0 if isinstance(result, torch.Tensor) else tuple(0 for _ in result)

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
