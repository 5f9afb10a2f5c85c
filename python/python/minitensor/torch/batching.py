"""`torch.vmap` of ops: from the shape clause where it has batch dimensions, otherwise one call for each example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .._definitions import Axis, Role
from .._minitensor import _keys_taken

if TYPE_CHECKING:
    from .definition import Definition
    from .op import Op

Rule = Callable[..., Any]


def batch(op: Op, call: Callable[..., Any]) -> Rule:
    """The rule of an op, which `call` calls."""
    definition = op.definition

    def rule(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        args = definition.all_arguments(args)
        in_dims = (*in_dims, *[None] * (len(args) - len(in_dims)))
        together = at_once(definition, info.batch_size, in_dims, args)
        taken = _keys_taken()
        if together is None:
            result, dims = one_by_one(info, in_dims, call, args)
        else:
            result = call(*together)
            dims = 0 if isinstance(result, torch.Tensor) else tuple(0 for _ in result)
        if _keys_taken() != taken:
            check_randomness(definition.name, getattr(info, "randomness", "different"))
        return result, dims

    return rule


def check_randomness(name: str, randomness: str) -> None:
    """Raises RuntimeError unless the examples of a batch may have different random numbers."""
    if randomness == "error":
        raise RuntimeError(
            f"vmap: op '{name}' draws random numbers; pass randomness='different' if each example should get its own"
        )
    if randomness == "same":
        raise RuntimeError(
            f"vmap: op '{name}' draws random numbers in its own code, so the examples cannot have the same; pass "
            "randomness='different', or draw them before vmap"
        )


def at_once(definition: Definition, size: int, in_dims: tuple[Any, ...], args: tuple[Any, ...]) -> list[Any] | None:
    """The arguments of one call for all examples, whose batch is the first dimension; None if there is no such call."""
    shapes, count = definition.shapes, len(definition.inputs)
    if shapes is None or not shapes.is_batched or definition.is_variadic:
        return None
    tensors, dims, attributes = args[:count], in_dims[:count], args[count:]
    own = [shapes.of(Role(False, k)) for k in range(count)]
    if any(dim is not None and not of.has_batch for dim, of in zip(dims, own, strict=True)):
        return None
    ranks = [None if t is None else t.dim() - (dim is not None) for t, dim in zip(tensors, dims, strict=True)]
    if shapes.axis is not None:
        return at_axes(definition, shapes.axis, size, (tensors, dims, ranks), args)
    # A tensor with too few dimensions must not use the batch as one of them.
    if any(rank is not None and rank < len(of.core) for rank, of in zip(ranks, own, strict=True)):
        return None
    cores = [len(of.core) if of.has_batch else None for of in own]
    return [*aligned(tensors, dims, cores), *attributes]


def at_axes(
    definition: Definition, axis: Axis, size: int, given: tuple[Any, Any, list[int | None]], args: tuple[Any, ...]
) -> list[Any] | None:
    """The same for an op whose caller chose the axes: they are counted from the last dimension."""
    tensors, dims, ranks = given
    found = {rank for rank in ranks if rank is not None}
    attrs = definition.complete(definition.attributes(args))
    rank = found.pop()
    if found or rank == 0 or not axis.is_valid(attrs, rank):
        return None
    axes = axis.from_the_end(attrs, rank)[axis.attribute]
    attributes = [
        axes if a.name == axis.attribute else value
        for a, value in zip(definition.attrs, args[len(definition.inputs) :], strict=True)
    ]
    # The inputs of such an op have equal numbers of dimensions.
    batched = [
        t if t is None else t.expand(size, *t.shape) if dim is None else t.movedim(dim, 0)
        for t, dim in zip(tensors, dims, strict=True)
    ]
    return [*batched, *attributes]


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


class Info(NamedTuple):
    """The size of a batch, for a rule."""

    batch_size: int


def within_autograd(rule: Rule, *args: Any) -> Any:
    """The kernel for the batches of `torch.autograd`: of cotangents with `is_grads_batched`, and with `vectorize`."""
    level = torch._C._vmapmode_increment_nesting() - 1
    torch._C._vmapmode_decrement_nesting()
    sizes = []

    def physical(arg: Any) -> tuple[Any, Any]:
        if isinstance(arg, list | tuple):
            found = [physical(a) for a in arg]
            return [a for a, _ in found], [dim for _, dim in found]
        if not isinstance(arg, torch.Tensor) or not torch._C._functorch.is_legacy_batchedtensor(arg):
            return arg, None
        tensor = torch._remove_batch_dim(arg, level, 1, 0)
        sizes.append(tensor.shape[0])
        return tensor, 0

    found = [physical(arg) for arg in args]
    result, dims = rule(Info(max(sizes, default=1)), tuple(dim for _, dim in found), *(arg for arg, _ in found))
    if isinstance(result, torch.Tensor):
        return torch._add_batch_dim(result, dims, level)
    return type(result)(torch._add_batch_dim(t, dim, level) for t, dim in zip(result, dims, strict=True))


def one_by_one(info: Any, in_dims: tuple[Any, ...], call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Calls the op for each example, and stacks the results."""
    results = [
        call(*(example(arg, dim, k) for arg, dim in zip(args, in_dims, strict=True))) for k in range(info.batch_size)
    ]
    # An empty batch has the shapes of an example, too.
    first = results[0] if results else call(*(blank(arg, dim) for arg, dim in zip(args, in_dims, strict=True)))

    def stacked(parts: Sequence[torch.Tensor]) -> torch.Tensor:
        return torch.stack(list(parts))[: info.batch_size]

    if isinstance(first, torch.Tensor):
        return stacked(results or [first]), 0
    kind = list if isinstance(first, list) else tuple
    return kind(stacked(parts) for parts in zip(*(results or [first]), strict=True)), kind([0] * len(first))


def example(arg: Any, dim: Any, k: int) -> Any:
    """One example of an argument."""
    if isinstance(dim, list | tuple):
        return [example(a, d, k) for a, d in zip(arg, dim, strict=True)]
    return arg if dim is None or arg is None else arg.select(dim, k)


def blank(arg: Any, dim: Any) -> Any:
    """An example of an argument whose batch is empty."""
    if isinstance(dim, list | tuple):
        return [blank(a, d) for a, d in zip(arg, dim, strict=True)]
    return arg if dim is None or arg is None else arg.new_zeros([n for k, n in enumerate(arg.shape) if k != dim])
