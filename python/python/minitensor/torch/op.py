"""An op in PyTorch's dispatcher: schema, kernel, shapes, gradient, and batching."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .._minitensor import _array_function, _gradient, _has_cuda, _op_identity, _undispatched_function
from . import batching, decomposition, shapes
from .declaration import declare
from .definition import Definition, given, in_schema
from .function import make_function
from .recording import (
    Call,
    below_autograd,
    computation,
    has_transforms,
    is_recorded,
    recorded,
    recorded_within_transforms,
)
from .selection import Selection, Tensors

#: The dispatch keys of devices and layouts that have no kernels of minitensor.
_ELSEWHERE = ("MPS", "XPU", "SparseCPU", "SparseCsrCPU", "MkldnnCPU", "QuantizedCPU")


class Op:
    """An op of minitensor, registered as `torch.ops.<namespace>.<name>`.

    Its gradients of all orders are one more op, `<name>_gradient`, which takes the cotangents of all orders, the
    highest first, then the inputs. The argument `wrt` is a `Selection`.
    """

    def __init__(self, namespace: str, name: str, full_name: str) -> None:
        self.definition = definition = Definition(full_name)
        self.identity = _op_identity(full_name)
        self.name = name.replace("::", "__")
        self.direct = _array_function(full_name)
        self.undispatched = _undispatched_function(full_name)
        self.library = torch.library.Library(namespace, "FRAGMENT")
        self.is_destroyed = False
        self.recorded = recorded(self)
        #: The ops in PyTorch that have decompositions, and these.
        self.decompositions: dict[Any, Callable[..., Any]] = {}
        self.op = self._define(
            self.name,
            definition.schema,
            self._kernel,
            self._fake,
            batching.batch(self, lambda *args: self.op(*args)),
            functools.partial(decomposition.forward, self),
        )
        if definition.is_differentiable:
            self.gradient_op = self._define(
                f"{self.name}_gradient",
                definition.gradient_schema,
                self._gradient_kernel,
                self._fake_gradient,
                batching.batch_gradient(self),
                functools.partial(decomposition.gradient, self),
            )
            self.library.impl(f"{self.name}_gradient", self._record_gradient, "Autograd", with_keyset=True)
        has_derivatives = any(o.differentiable for o in definition.outputs)
        # Whether a backward pass must raise an error, with the reason why there is no gradient.
        self._lacks_gradient = definition.no_gradient is not None and has_derivatives and definition.mutated is None
        if definition.is_differentiable or self._lacks_gradient:
            self.library.impl(self.name, self._record, "Autograd", with_keyset=True)
        elif definition.mutated is not None:
            self.library.impl(self.name, self._change, "Autograd", with_keyset=True)
        self.function = make_function(self)

    def is_current(self) -> bool:
        """Whether the name still has this definition."""
        return not self.is_destroyed and bool(_op_identity(self.definition.name) == self.identity)

    def destroy(self) -> None:
        """Removes the kernels of the op from the dispatcher."""
        self.is_destroyed = True
        self.library._destroy()

    def _define(
        self,
        name: str,
        schema: str,
        kernel: Callable[..., Any],
        fake: Callable[..., Any],
        batch: Any,
        decomposition: Callable[..., Any],
    ) -> Any:
        declare(self.library.ns, name, schema)
        qualified = f"{self.library.ns}::{name}"
        if self.definition.inputs:
            elsewhere = functools.partial(self._compute_elsewhere, decomposition)
            self.library.impl(name, kernel, "CPU")
            self.library.impl(name, functools.partial(self._compute_on_cuda, kernel, elsewhere), "CUDA")
            for key in _ELSEWHERE:
                self.library.impl(name, elsewhere, key)
        else:
            # Without tensors, a call has no device.
            self.library.impl(name, kernel, "CompositeExplicitAutograd")
        torch.library.register_fake(qualified, fake, lib=self.library)
        if self.definition.mutated is None:
            torch.library.register_vmap(qualified, batch, lib=self.library)
            self.library.impl(name, functools.partial(batching.within_autograd, batch), "Batched")
        op = getattr(getattr(torch.ops, self.library.ns), name).default
        if self.definition.has_program and self.definition.mutated is None:
            self.decompositions[op] = decomposition
        return op

    # The op.

    def dispatch(self, tensors: Sequence[Any], attributes: Sequence[Any]) -> Any:
        """A call through PyTorch's dispatcher, with all arguments."""
        if self.is_destroyed:
            raise RuntimeError(
                f"op '{self.definition.name}' of this function was defined again; get its function from "
                "minitensor.torch again"
            )
        values = [in_schema(a, value) for a, value in zip(self.definition.attrs, attributes, strict=True)]
        return self.op(*self.definition.nested(tensors), *values)

    def _kernel(self, *args: Any) -> Any:
        definition = self.definition
        args = definition.all_arguments(args)
        tensors = args[: len(definition.inputs)]
        result = self.direct(*tensors, **definition.attributes(args))
        if definition.gives_list:
            return list(result)
        return result if definition.outputs else None

    def _fake(self, *args: Any) -> Any:
        definition = self.definition
        args = definition.all_arguments(args)
        tensors = definition.flat(args)
        devices = {t.device: None for t in tensors if t is not None}
        if len(devices) > 1:
            found = " and ".join(f"'{device}'" for device in devices)
            raise RuntimeError(f"op '{definition.name}' takes tensors of one device, got {found}; move them with .to()")
        device = next(iter(devices), "cpu")
        results = [
            torch.empty(shape, dtype=dtype, device=device)
            for shape, dtype in shapes.results(definition, tensors, definition.attributes(args))
        ]
        if not definition.outputs:
            return None
        if definition.gives_list:
            return results
        return results[0] if len(results) == 1 else tuple(results)

    @staticmethod
    def _compute_on_cuda(kernel: Callable[..., Any], elsewhere: Callable[..., Any], *args: Any) -> Any:
        """The kernel of CUDA. That of the CPU computes on the device of its arguments, if minitensor has it."""
        return (kernel if _has_cuda() else elsewhere)(*args)

    def _compute_elsewhere(self, decomposition: Callable[..., Any], *args: Any) -> Any:
        """The kernel of other devices and layouts: the decomposition, if there is one for the call."""
        tensors = [t for arg in args for t in (arg if isinstance(arg, list) else [arg]) if isinstance(t, torch.Tensor)]
        quantized = next((t.dtype for t in tensors if t.is_quantized), None)
        if quantized is not None:
            raise NotImplementedError(
                f"op '{self.definition.name}' takes no quantized tensors, got {quantized}; convert them with "
                ".dequantize()"
            )
        if self.definition.has_program and all(t.layout is torch.strided for t in tensors):
            found = decomposition(*args)
            if found is not NotImplemented:
                return found
        kinds = " and ".join(sorted({f"{t.layout} {t.dtype} on '{t.device}'" for t in tensors}))
        if _has_cuda():
            devices, missing = "devices 'cpu' and 'cuda'", ""
        else:
            devices = "device 'cpu'"
            missing = "; minitensor has no CUDA device here" if any(t.is_cuda for t in tensors) else ""
        raise NotImplementedError(
            f"op '{self.definition.name}' computes such tensors on the {devices} only, with the layout "
            f"torch.strided, got {kinds}{missing}; convert them with .to_dense(), or copy them with .cpu()"
        )

    # Its gradient.

    def _record(self, keys: Any, *args: Any) -> Any:
        """The kernel of autograd for the op."""
        complete = self.definition.all_arguments(args)
        tensors = self.definition.flat(complete)
        if not is_recorded(tensors):
            return below_autograd(self.op, keys, args)
        call = Call((), complete[len(self.definition.inputs) :])
        found = self._recorded(call, computation(self.op, keys, args), tensors)
        return list(found) if self.definition.gives_list else found

    def _change(self, keys: Any, *args: Any) -> Any:
        """The kernel of autograd for an op that changes an argument in place."""
        definition = self.definition
        tensors = definition.flat(definition.all_arguments(args))
        changed = [t for t, of in zip(tensors, definition.inputs, strict=False) if of.mutated and t is not None]
        if is_recorded(tensors):
            raise RuntimeError(
                f"op '{definition.name}' changes '{definition.mutated}' in place, which gradients and transforms in "
                "PyTorch do not support; use an op that returns a new tensor, or call it under torch.no_grad()"
            )
        found = below_autograd(self.op, keys, args)
        for t in changed:
            if not t.is_inference():
                torch.autograd.graph.increment_version(t)
        return found

    def _record_gradient(
        self, keys: Any, tensors: list[torch.Tensor], results: list[torch.Tensor], wrt: str, *attributes: Any
    ) -> list[torch.Tensor]:
        """The kernel of autograd for the gradient op."""
        args = (tensors, results, wrt, *attributes)
        if not is_recorded(tensors):
            return list(below_autograd(self.gradient_op, keys, args))
        selection = Selection.decode(wrt)
        call = Call(selection.orders, attributes, len(results))
        compute = computation(self.gradient_op, keys, args)
        return list(self._recorded(call, compute, [*results, *selection.complete(tensors)]))

    def _recorded(self, call: Call, compute: Callable[[], Any], tensors: Sequence[torch.Tensor | None]) -> Any:
        if has_transforms():
            return recorded_within_transforms(self.recorded, call, compute, tensors)
        return self.recorded(call, compute, *tensors)

    def gradients(
        self, call: Call, results: Sequence[torch.Tensor], tensors: Tensors, needs: Sequence[bool]
    ) -> Tensors:
        """The gradients of the last `len(needs)` tensors; None for those that need none.

        `tensors` has the cotangents of a call, then its tensors. `results` are those that the gradient reads.
        """
        if self._lacks_gradient:
            raise RuntimeError(f"op '{self.definition.name}' has no gradient: {self.definition.no_gradient}")
        if not self.is_current():
            raise RuntimeError(
                f"op '{self.definition.name}' was unregistered or defined again after it was called, so the gradient "
                "of the call is not available"
            )
        last = tensors[len(tensors) - len(needs) :]
        wanted = [
            need and t is not None and (t.is_floating_point() or t.is_complex())
            for need, t in zip(needs, last, strict=True)
        ]
        if not any(wanted):
            return [None] * len(needs)
        # The gradient is itself recorded if it will be differentiated.
        selection = Selection([*call.orders, wanted], [t is not None for t in tensors])
        present = [t for t in tensors if t is not None]
        attributes = [in_schema(a, value) for a, value in zip(self.definition.attrs, call.attributes, strict=False)]
        found = iter(self.gradient_op(present, list(results), selection.encode(), *attributes))
        return [next(found) if w else None for w in wanted]

    def _gradient_kernel(
        self, tensors: list[torch.Tensor], results: list[torch.Tensor], wrt: str, *attributes: Any
    ) -> list[torch.Tensor]:
        selection = Selection.decode(wrt)
        attrs = dict(given(self.definition.attrs, attributes))
        return list(
            _gradient(self.definition.name, selection.complete(tensors), attrs, selection.orders, list(results))
        )

    def _fake_gradient(
        self, tensors: list[torch.Tensor], results: list[torch.Tensor], wrt: str, *attributes: Any
    ) -> list[torch.Tensor]:
        wanted = Selection.decode(wrt).wanted(tensors)
        return [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in wanted]
