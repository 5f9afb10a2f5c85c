"""An op in PyTorch's dispatcher: schema, kernel, shapes, gradient, and batching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .._minitensor import _array_function, _gradient, _op_identity
from . import batching, shapes
from .definition import Definition
from .function import make_function
from .selection import Selection, Tensors, split

#: The dispatch keys of devices and layouts that have no kernels.
_REFUSED = ("CUDA", "MPS", "XPU", "SparseCPU", "SparseCsrCPU", "MkldnnCPU")


class Op:
    """An op of minitensor, registered as `torch.ops.<namespace>.<name>`.

    Its gradients of all orders are one more op, `<name>_gradient`, which takes the cotangents of all orders, the
    highest first, then the inputs. The argument `wrt` is a `Selection`.
    """

    def __init__(self, namespace: str, name: str, full_name: str) -> None:
        self.definition = Definition(full_name)
        self.identity = _op_identity(full_name)
        self.name = name.replace("::", "__")
        self.direct = _array_function(full_name)
        self.library = torch.library.Library(namespace, "FRAGMENT")
        batch = batching.batch(self, lambda *args: self.op(*args))
        self.op = self._define(self.name, self.definition.schema, self._kernel, self._fake, batch)
        if self.definition.is_differentiable:
            self.gradient_op = self._define(
                f"{self.name}_gradient",
                self.definition.gradient_schema,
                self.compute_gradient,
                self._fake_gradient,
                batching.batch_gradient(self),
            )
            self._differentiate(self.op, self._backward, self._save)
            self._differentiate(self.gradient_op, self._gradient_backward, self._save_gradient)
        elif not self.definition.mutates:
            self._refuse_gradients()
        self.function = make_function(self)

    def is_current(self) -> bool:
        """Whether the name still has this definition."""
        return bool(_op_identity(self.definition.name) == self.identity)

    def destroy(self) -> None:
        """Removes the op from the dispatcher."""
        self.library._destroy()

    def _define(self, name: str, schema: str, kernel: Callable[..., Any], fake: Callable[..., Any], batch: Any) -> Any:
        tags = [torch.Tag.pt2_compliant_tag]
        self.library.define(name + schema, tags=tags)
        qualified = f"{self.library.ns}::{name}"
        # Without tensors, a call has no device.
        self.library.impl(name, kernel, "CPU" if self.definition.inputs else "CompositeExplicitAutograd")
        for key in _REFUSED if self.definition.inputs else ():
            self.library.impl(name, self._refuse, key)
        torch.library.register_fake(qualified, fake, lib=self.library)
        if not self.definition.mutates:
            torch.library.register_vmap(qualified, batch, lib=self.library)
        return getattr(getattr(torch.ops, self.library.ns), name).default

    def _differentiate(self, op: Any, backward: Callable[..., Any], save: Callable[..., Any] | None = None) -> None:
        torch.library.register_autograd(op, backward, setup_context=save, lib=self.library)

    # The op.

    def _kernel(self, *args: Any) -> Any:
        definition = self.definition
        args = definition.complete(args)
        tensors = args[: len(definition.inputs)]
        result = self.direct(*tensors, **definition.attributes(args))
        if definition.gives_list:
            return list(result)
        return result if definition.outputs else None

    def _fake(self, *args: Any) -> Any:
        definition = self.definition
        if not definition.outputs:
            return None
        args = definition.complete(args)
        tensors = definition.flat(args)
        device = next((t.device for t in tensors if t is not None), "cpu")
        results = [
            torch.empty(shape, dtype=dtype, device=device)
            for shape, dtype in shapes.results(definition, tensors, definition.attributes(args))
        ]
        if definition.gives_list:
            return results
        return results[0] if len(results) == 1 else tuple(results)

    def _refuse(self, *args: Any) -> Any:
        tensors = [t for arg in args for t in (arg if isinstance(arg, list) else [arg]) if isinstance(t, torch.Tensor)]
        found = " and ".join(sorted({f"{t.layout} on '{t.device}'" for t in tensors}))
        raise NotImplementedError(
            f"op '{self.definition.name}' computes with torch.strided tensors on the device 'cpu' only, got {found}; "
            "convert them with .to_dense(), or copy them with .cpu()"
        )

    # Its gradient.

    def _save(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        inputs = self.definition.complete(inputs)
        results = self.definition.read(output)
        ctx.save_for_backward(*results, *self.definition.flat(inputs))
        ctx.result_count = len(results)
        ctx.attributes = inputs[len(self.definition.inputs) :]
        ctx.set_materialize_grads(False)

    def _backward(self, ctx: Any, *cotangents: Any) -> Any:
        definition = self.definition
        if definition.gives_list:
            cotangents = tuple(cotangents[0])
        results, tensors = split(ctx)
        needs = list(ctx.needs_input_grad[: len(definition.inputs)])
        needs += [False] * (len(definition.inputs) - len(needs))
        if definition.is_variadic:
            needs[-1:] = needs[-1]
        gradients = self.gradients(self.gradient_op, [*cotangents, *tensors], results, ctx.attributes, [], needs)
        return (*definition.nested(gradients), *[None] * len(definition.attrs))[: len(ctx.needs_input_grad)]

    def gradients(
        self,
        call: Callable[..., Any],
        tensors: Tensors,
        results: Sequence[torch.Tensor],
        attributes: Sequence[Any],
        lower: list[list[bool]],
        needs: Sequence[bool],
    ) -> Tensors:
        """The gradients of the last `len(needs)` tensors, by a call of the gradient op; None for those that need none.

        `results` are those that the gradient reads. `lower` selects the gradients of the lower orders.
        """
        last = tensors[len(tensors) - len(needs) :]
        wanted = [
            need and t is not None and (t.is_floating_point() or t.is_complex())
            for need, t in zip(needs, last, strict=True)
        ]
        if not any(wanted):
            return [None] * len(needs)
        selection = Selection([*lower, wanted], [t is not None for t in tensors])
        given = [t for t in tensors if t is not None]
        found = iter(call(given, list(results), selection.encode(), *attributes))
        return [next(found) if w else None for w in wanted]

    def compute_gradient(
        self, tensors: list[torch.Tensor], results: list[torch.Tensor], wrt: str, *attributes: Any
    ) -> list[torch.Tensor]:
        """The kernel of the gradient op."""
        selection = Selection.decode(wrt)
        attrs = self.definition.attributes((*[None] * len(self.definition.inputs), *attributes))
        return list(_gradient(self.definition.name, selection.complete(tensors), attrs, selection.orders, results))

    def _fake_gradient(
        self, tensors: list[torch.Tensor], results: list[torch.Tensor], wrt: str, *attributes: Any
    ) -> list[torch.Tensor]:
        wanted = Selection.decode(wrt).wanted(tensors)
        return [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in wanted]

    def _save_gradient(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        tensors, results, ctx.wrt, *ctx.attributes = inputs
        ctx.save_for_backward(*results, *tensors)
        ctx.result_count = len(results)
        ctx.set_materialize_grads(False)

    def _gradient_backward(self, ctx: Any, cotangents: Tensors) -> Any:
        selection = Selection.decode(ctx.wrt)
        results, given = split(ctx)
        tensors = [*cotangents, *selection.complete(given)]
        needed = iter(ctx.needs_input_grad[0])
        needs = [next(needed) if given else False for given in selection.given]
        gradients = self.gradients(self.gradient_op, tensors, results, ctx.attributes, selection.orders, needs)
        of_given = [g for g, given in zip(gradients, selection.given, strict=True) if given]
        # The results depend on the tensors, whose gradients are complete.
        return (of_given, [None] * len(results), None, *[None] * len(ctx.attributes))

    def _refuse_gradients(self) -> None:
        """Registers a gradient that raises an error, with the reason why there is none."""
        definition = self.definition
        if not (any(o.differentiable for o in definition.outputs) and definition.no_gradient):
            return

        def backward(ctx: Any, *cotangents: Any) -> Any:
            raise RuntimeError(f"op '{definition.name}' has no gradient: {definition.no_gradient}")

        self._differentiate(self.op, backward)
