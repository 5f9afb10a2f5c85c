"""Calls that autograd records: classes of `torch.autograd.Function`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from . import batching
from .selection import Selection, split

if TYPE_CHECKING:
    from .op import Op

_grad_enabled = torch.is_grad_enabled


def recorded(op: Op) -> Callable[..., Any]:
    """Returns a function that calls the kernel directly, given the attributes and the tensors of a call."""

    class Recorded(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, attributes: tuple[Any, ...], *tensors: Tensor | None) -> Any:
            found = op._kernel(*tensors, *attributes)
            results = op.definition.read(found)
            ctx.save_for_backward(*results, *tensors)
            ctx.result_count = len(results)
            ctx.attributes = attributes
            ctx.set_materialize_grads(False)
            return found

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            # The gradient is itself recorded if it will be differentiated.
            call = op.gradient_op if _grad_enabled() else op.compute_gradient
            results, tensors = split(ctx)
            tensors = [*cotangents, *tensors]
            return (None, *op.gradients(call, tensors, results, ctx.attributes, [], ctx.needs_input_grad[1:]))

    Recorded.__name__ = Recorded.__qualname__ = op.name
    apply: Callable[..., Any] = Recorded.apply
    return apply


def transformed(op: Op) -> Callable[..., Any]:
    """Returns a function that `torch.func` and forward-mode differentiation can transform, given the attributes and the
    tensors of a call."""

    class Gradient(torch.autograd.Function):
        """The gradient op. Of its tensors, the first `count` are results of the call."""

        @staticmethod
        def forward(wrt: str, attributes: tuple[Any, ...], count: int, *tensors: Tensor) -> Any:
            return tuple(op.gradient_op(list(tensors[count:]), list(tensors[:count]), wrt, *attributes))

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.wrt, ctx.attributes, ctx.result_count, *tensors = inputs
            ctx.save_for_backward(*tensors)
            ctx.save_for_forward(*tensors)
            ctx.kinds = [(t.shape, t.dtype, t.device) for t in output]

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            selection = Selection.decode(ctx.wrt)
            results, given = split(ctx)
            needed = iter(ctx.needs_input_grad[3 + len(results) :])
            needs = [next(needed) if given else False for given in selection.given]
            tensors = [*cotangents, *selection.complete(given)]
            gradients = op.gradients(call_gradient, tensors, results, ctx.attributes, selection.orders, needs)
            of_given = [g for g, given in zip(gradients, selection.given, strict=True) if given]
            return (None, None, None, *[None] * len(results), *of_given)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            selection = Selection.decode(ctx.wrt)
            results, given = split(ctx)
            tangents = selection.complete(tangents[3 + len(results) :])
            return derivative(ctx, tangents, selection.complete(given), results, selection.orders)

        @staticmethod
        def vmap(
            info: Any, in_dims: tuple[Any, ...], wrt: str, attributes: tuple[Any, ...], count: int, *tensors: Any
        ) -> Any:
            results, dims = batching.one_by_one(
                info, in_dims[3:], lambda *tensors: Gradient.apply(wrt, attributes, count, *tensors), tensors
            )
            return tuple(results), tuple(dims)

    def call_gradient(tensors: list[Tensor], results: list[Tensor], wrt: str, *attributes: Any) -> Any:
        return Gradient.apply(wrt, attributes, len(results), *results, *tensors)

    def derivative(
        ctx: Any, tangents: Sequence[Any], tensors: Sequence[Any], results: Sequence[Any], orders: list[list[bool]]
    ) -> Any:
        """The directional derivative of a call, or of a gradient of it.

        A gradient is linear in the cotangents, so its own gradient with respect to them maps tangents to tangents.
        """
        mask = [t is not None for t in tangents]
        given = [t for t in tangents if t is not None]
        zeros = [torch.zeros((), dtype=dtype, device=device).expand(shape) for shape, dtype, device in ctx.kinds]
        needs = [*[True] * len(zeros), *[False] * len(tensors)]
        arguments = [*given, *zeros, *tensors]
        found = op.gradients(call_gradient, arguments, results, ctx.attributes, [*orders, mask], needs)[: len(zeros)]
        is_single = not orders and len(found) == 1 and not op.definition.gives_list
        return found[0] if is_single else tuple(found)

    class Transformed(torch.autograd.Function):
        @staticmethod
        def forward(attributes: tuple[Any, ...], *tensors: Tensor | None) -> Any:
            result = op.op(*op.definition.nested(list(tensors)), *attributes)
            return tuple(result) if isinstance(result, list) else result

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.attributes, *tensors = inputs
            results = op.definition.read(output)
            ctx.result_count = len(results)
            ctx.save_for_backward(*results, *tensors)
            ctx.save_for_forward(*results, *tensors)
            outputs = [output] if isinstance(output, Tensor) else output
            ctx.kinds = [(t.shape, t.dtype, t.device) for t in outputs]

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            results, tensors = split(ctx)
            tensors = [*cotangents, *tensors]
            return (None, *op.gradients(call_gradient, tensors, results, ctx.attributes, [], ctx.needs_input_grad[1:]))

        @staticmethod
        def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
            results, tensors = split(ctx)
            return derivative(ctx, tangents, tensors, results, [])

        @staticmethod
        def vmap(info: Any, in_dims: tuple[Any, ...], attributes: tuple[Any, ...], *tensors: Any) -> Any:
            call = lambda *args: Transformed.apply(args[len(tensors) :], *args[: len(tensors)])  # noqa: E731
            rule = batching.batch(op, call)
            return rule(info, (*in_dims[1:], *[None] * len(attributes)), *tensors, *attributes)

    apply: Callable[..., Any] = Transformed.apply
    return apply
