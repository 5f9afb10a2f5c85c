"""Calls that autograd records: classes of `torch.autograd.Function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from . import batching
from .selection import Selection

if TYPE_CHECKING:
    from .op import Op

_grad_enabled = torch.is_grad_enabled


def recorded(op: Op) -> Callable[..., Any]:
    """Returns a function that calls the kernel directly, given the attributes and the tensors of a call."""

    class Recorded(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, attributes: tuple[Any, ...], *tensors: Tensor | None) -> Any:
            ctx.save_for_backward(*tensors)
            ctx.attributes = attributes
            ctx.set_materialize_grads(False)
            return op._kernel(*tensors, *attributes)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            # The gradient is itself recorded if it will be differentiated.
            call = op.gradient_op if _grad_enabled() else op.compute_gradient
            tensors = [*cotangents, *ctx.saved_tensors]
            return (None, *op.gradients(call, tensors, ctx.attributes, [], ctx.needs_input_grad[1:]))

    Recorded.__name__ = Recorded.__qualname__ = op.name
    apply: Callable[..., Any] = Recorded.apply
    return apply


def transformed(op: Op) -> Callable[..., Any]:
    """Returns a function that `torch.func` can transform, given the attributes and the tensors of a call."""

    class Gradient(torch.autograd.Function):
        @staticmethod
        def forward(wrt: str, attributes: tuple[Any, ...], *tensors: Tensor) -> Any:
            return tuple(op.gradient_op(list(tensors), wrt, *attributes))

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.wrt, ctx.attributes, *tensors = inputs
            ctx.save_for_backward(*tensors)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            selection = Selection.decode(ctx.wrt)
            needed = iter(ctx.needs_input_grad[2:])
            needs = [next(needed) if given else False for given in selection.given]
            tensors = [*cotangents, *selection.complete(ctx.saved_tensors)]
            gradients = op.gradients(call_gradient, tensors, ctx.attributes, selection.orders, needs)
            return (None, None, *[g for g, given in zip(gradients, selection.given, strict=True) if given])

        @staticmethod
        def vmap(info: Any, in_dims: tuple[Any, ...], wrt: str, attributes: tuple[Any, ...], *tensors: Any) -> Any:
            results, dims = batching.one_by_one(
                info, in_dims[2:], lambda *tensors: Gradient.apply(wrt, attributes, *tensors), tensors
            )
            return tuple(results), tuple(dims)

    def call_gradient(tensors: list[Tensor], wrt: str, *attributes: Any) -> Any:
        return Gradient.apply(wrt, attributes, *tensors)

    class Transformed(torch.autograd.Function):
        @staticmethod
        def forward(attributes: tuple[Any, ...], *tensors: Tensor | None) -> Any:
            result = op.op(*op.definition.nested(list(tensors)), *attributes)
            return tuple(result) if isinstance(result, list) else result

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.attributes, *tensors = inputs
            ctx.save_for_backward(*tensors)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            tensors = [*cotangents, *ctx.saved_tensors]
            return (None, *op.gradients(call_gradient, tensors, ctx.attributes, [], ctx.needs_input_grad[1:]))

        @staticmethod
        def vmap(info: Any, in_dims: tuple[Any, ...], attributes: tuple[Any, ...], *tensors: Any) -> Any:
            call = lambda *args: Transformed.apply(args[len(tensors) :], *args[: len(tensors)])  # noqa: E731
            rule = batching.batch(op, call)
            return rule(info, (*in_dims[1:], *[None] * len(attributes)), *tensors, *attributes)

    apply: Callable[..., Any] = Transformed.apply
    return apply
