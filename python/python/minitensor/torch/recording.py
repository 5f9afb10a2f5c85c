"""Calls that autograd records: of an op, and of its gradients of any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from .._minitensor import _DirectGradient
from .plain import need_gradient

if TYPE_CHECKING:
    from .op import Op

grad_enabled = torch.is_grad_enabled
has_transforms = torch._C._are_functorch_transforms_active


class Call(NamedTuple):
    """The non-tensor arguments of a recorded call. Its tensors are the known results, then those of the function.

    The function of order 0 is the op. That of order k takes cotangents of the function of order k - 1 and its tensors.
    """

    #: For each order, the tensors of the function below whose gradients are returned.
    orders: Sequence[Sequence[bool]]
    attributes: Sequence[Any]
    #: The number of known results.
    known: int = 0


class _Function(_SingleLevelFunction):
    """A function that autograd records for one transform."""

    @staticmethod
    def _compiled_autograd_key(ctx: Any) -> tuple[Any, ...]:
        # Compiled autograd asks for it, and only functions of several transforms have it.
        return (ctx._autograd_function_id,)


def recorded(op: Op) -> Callable[..., Any]:
    """Returns a function that autograd records, of a `Call`, a function that computes it, and its tensors."""
    reads_results = any(op.definition.results_read)

    class Recorded(_Function):
        @staticmethod
        def forward(call: Call, compute: Callable[[], Any], *tensors: Tensor | None) -> Any:
            found = compute()
            return tuple(found) if isinstance(found, list) else found

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            call, _, *tensors = inputs
            ctx.call = call
            # The arguments before the tensors of the function.
            ctx.first = 2 + call.known
            ctx.known = call.known
            if reads_results and not call.orders:
                results = op.definition.read(output)
                ctx.known = len(results)
                tensors = [*results, *tensors]
            ctx.save_for_backward(*tensors)
            if has_transforms() or forward_ad._current_level >= 0:
                ctx.save_for_forward(*tensors)
                outputs = [output] if isinstance(output, Tensor) else output
                ctx.results = [(t.shape, t.dtype, t.device) for t in outputs]
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            saved, known, first = ctx.saved_tensors, ctx.known, ctx.first
            arguments = [*cotangents, *saved[known:]]
            found = op.gradients(ctx.call, saved[:known], arguments, ctx.needs_input_grad[first:])
            # Results depend on the tensors, whose gradients are complete.
            return (*[None] * first, *found)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            # The derivative itself is differentiated by the other transforms only.
            saved = [t if t is None else torch._VF._unpack_dual(t, level=0)[0] for t in ctx.saved_tensors]
            call, results, tensors = ctx.call, saved[: ctx.known], saved[ctx.known :]
            tangents = tangents[ctx.first :]
            # A gradient is linear in the cotangents. Its gradient with respect to them maps tangents to tangents.
            mask = [t is not None for t in tangents]
            zeros = [zero(*result) for result in ctx.results]
            gradient = Call([*call.orders, mask], call.attributes)
            given = [t for t in tangents if t is not None]
            needs = [*[True] * len(zeros), *[False] * len(tensors)]
            with forward_ad._set_fwd_grad_enabled(True):
                found = op.gradients(gradient, results, [*given, *zeros, *tensors], needs)[: len(zeros)]
            is_single = not call.orders and len(found) == 1 and not op.definition.gives_list
            return found[0] if is_single else tuple(found)

    Recorded.__name__ = Recorded.__qualname__ = op.name
    apply: Callable[..., Any] = Recorded.apply
    return apply


def recorded_directly(op: Op) -> Callable[..., Any]:
    """Returns a function that autograd records, of the attributes of an unobserved call, and its plain tensors.

    For plain tensors, the kernel is called without PyTorch's dispatcher. So is that of the gradient, unless the
    gradient is recorded or observed.
    """
    definition, undispatched = op.definition, op.undispatched
    known = sum(definition.results_read)
    has_attributes, has_several_outputs = bool(definition.attrs), len(definition.outputs) > 1
    gradient = _DirectGradient(definition.name).compute

    class Recorded(_Function):
        @staticmethod
        def forward(ctx: Any, attributes: dict[str, Any], *tensors: Tensor | None) -> Any:
            # With `setup_context`, PyTorch takes 5 µs more.
            result = undispatched(*tensors, **attributes)
            if result is NotImplemented:
                result = op.dispatch(tensors, definition.by_position(attributes))
            if has_attributes:
                ctx.attributes = attributes
            ctx.save_for_backward(*definition.read(result), *tensors) if known else ctx.save_for_backward(*tensors)
            if has_several_outputs:
                ctx.set_materialize_grads(False)
            return result

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            saved, needs = ctx.saved_tensors, ctx.needs_input_grad
            attributes = ctx.attributes if has_attributes else {}
            found = gradient(cotangents, saved, needs, attributes)
            if found is not NotImplemented:
                return found
            call = Call((), definition.by_position(attributes))
            return (None, *op.gradients(call, saved[:known], [*cotangents, *saved[known:]], needs[1:]))

    Recorded.__name__ = Recorded.__qualname__ = op.name
    apply: Callable[..., Any] = Recorded.apply
    return apply


def recorded_within_transforms(
    recorded: Callable[..., Any], call: Call, compute: Callable[[], Any], tensors: Sequence[Tensor | None]
) -> Any:
    """Computes and records a call for the innermost transform of `torch.func`."""
    with enable_single_level_autograd_function():
        return recorded(call, compute, *tensors)


def zero(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor | None:
    """The zero cotangent of a result; None if it has no derivatives."""
    is_differentiable = dtype.is_floating_point or dtype.is_complex
    return torch.zeros((), dtype=dtype, device=device).expand(shape) if is_differentiable else None


def is_recorded(tensors: Sequence[Tensor | None]) -> bool:
    """Whether autograd or a transform must see a call."""
    return has_transforms() or forward_ad._current_level >= 0 or need_gradient(tensors)


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
