"""Calls that autograd records: of an op, and of its gradients of any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

if TYPE_CHECKING:
    from .op import Op

grad_enabled = torch.is_grad_enabled
has_transforms = torch._C._are_functorch_transforms_active


class Call:
    """What a call has besides tensors. These are the known results, then the tensors of the function.

    The function of order 0 is the op. That of order k takes cotangents of the function of order k - 1 and its tensors.
    """

    __slots__ = ("attributes", "compute", "is_direct", "known", "orders")

    def __init__(
        self,
        orders: Sequence[Sequence[bool]],
        attributes: Sequence[Any],
        known: int = 0,
        compute: Callable[[], Any] | None = None,
    ) -> None:
        #: For each order, the tensors of the function below whose gradients are returned.
        self.orders = orders
        self.attributes = attributes
        #: The number of known results.
        self.known = known
        #: Computes the call by the kernel after that of autograd. It is forgotten after the call.
        self.compute = compute
        #: Whether the tensors are plain, so that kernels are called without PyTorch's dispatcher.
        self.is_direct = compute is None


def recorded(op: Op) -> Callable[..., Any]:
    """Returns a function of a `Call` and its tensors that autograd records."""

    reads_results = any(op.definition.results_read)

    class Recorded(_SingleLevelFunction):
        @staticmethod
        def _compiled_autograd_key(ctx: Any) -> tuple[Any, ...]:
            # Compiled autograd asks for it, and only functions of several transforms have it.
            return (ctx._autograd_function_id,)

        @staticmethod
        def forward(call: Call, *tensors: Tensor | None) -> Any:
            if call.compute is None:
                return op._kernel(*tensors, *call.attributes)
            found = call.compute()
            return tuple(found) if isinstance(found, list) else found

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            call, *tensors = inputs
            call.compute = None
            ctx.call = call
            # The arguments before the tensors.
            ctx.first = 1 + call.known
            if reads_results and not call.orders:
                results = op.definition.read(output)
                call.known = len(results)
                tensors = [*results, *tensors]
            ctx.save_for_backward(*tensors)
            if has_transforms() or forward_ad._current_level >= 0:
                ctx.save_for_forward(*tensors)
                outputs = [output] if isinstance(output, Tensor) else output
                ctx.results = [(t.shape, t.dtype, t.device) for t in outputs]
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            saved, call, first = ctx.saved_tensors, ctx.call, ctx.first
            results, tensors = saved[: call.known], saved[call.known :]
            found = op.gradients(call, results, [*cotangents, *tensors], ctx.needs_input_grad[first:])
            # Results depend on the tensors, whose gradients are complete.
            return (*[None] * first, *found)

        @staticmethod
        def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
            # The derivative itself is differentiated by the other transforms only.
            saved = [t if t is None else torch._VF._unpack_dual(t, level=0)[0] for t in ctx.saved_tensors]
            call = ctx.call
            results, tensors = saved[: call.known], saved[call.known :]
            tangents = tangents[ctx.first - 1 :]
            # A gradient is linear in the cotangents. Its gradient with respect to them maps tangents to tangents.
            mask = [t is not None for t in tangents]
            zeros = [zero(*result) for result in ctx.results]
            gradient = Call([*call.orders, mask], call.attributes)
            gradient.is_direct = False
            given = [t for t in tangents if t is not None]
            needs = [*[True] * len(zeros), *[False] * len(tensors)]
            with forward_ad._set_fwd_grad_enabled(True):
                found = op.gradients(gradient, results, [*given, *zeros, *tensors], needs)[: len(zeros)]
            is_single = not call.orders and len(found) == 1 and not op.definition.gives_list
            return found[0] if is_single else tuple(found)

    Recorded.__name__ = Recorded.__qualname__ = op.name
    apply: Callable[..., Any] = Recorded.apply
    return apply


def recorded_within_transforms(recorded: Callable[..., Any], call: Call, tensors: Sequence[Tensor | None]) -> Any:
    """Computes and records a call for the innermost transform of `torch.func`."""
    with enable_single_level_autograd_function():
        return recorded(call, *tensors)


def zero(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor | None:
    """The zero cotangent of a result; None if it has no derivatives."""
    is_differentiable = dtype.is_floating_point or dtype.is_complex
    return torch.zeros((), dtype=dtype, device=device).expand(shape) if is_differentiable else None


def is_recorded(tensors: Sequence[Tensor | None]) -> bool:
    """Whether autograd or a transform must see a call."""
    if has_transforms() or forward_ad._current_level >= 0:
        return True
    return grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def below_autograd(overload: Any, keys: Any, args: Sequence[Any]) -> Any:
    """Computes a call by the kernel after that of autograd."""
    with torch._C._AutoDispatchBelowAutograd():
        return overload.redispatch(keys & torch._C._after_autograd_keyset, *args)


def computation(overload: Any, keys: Any, args: Sequence[Any]) -> Callable[[], Any]:
    """Returns a function that computes a recorded call by the kernel after that of autograd."""
    # Functions of autograd disable gradients, but the next transform may need them.
    is_forward, is_backward = torch._C._is_fwd_grad_enabled(), grad_enabled()

    def compute() -> Any:
        with torch.set_grad_enabled(is_backward), forward_ad._set_fwd_grad_enabled(is_forward):
            return below_autograd(overload, keys, args)

    return compute
