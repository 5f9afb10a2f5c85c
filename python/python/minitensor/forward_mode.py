"""Forward mode: directional derivatives of functions of tensors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from . import ops
from ._grad_mode import enable_grad
from ._minitensor import Tensor, _is_recording, _reaches_others, grad, is_grad_enabled, ones_like, zeros_like
from .tracing import tree

__all__ = ["jvp"]


class _Open(threading.local):
    """The calls that are running on a thread, each with the leaves that calls within it have created."""

    def __init__(self) -> None:
        self.leaves: list[list[Tensor]] = []


_open = _Open()


def jvp(function: Callable[..., Any], primals: Sequence[Tensor], tangents: Sequence[Tensor]) -> tuple[Any, Any]:
    """Returns the result of `function(*primals)`, and its derivative in the direction of `tangents`.

    The derivative is the Jacobian-vector product: how the result changes if the arguments change by `tangents`. It has
    the structure of the result. A result that is not a tensor, or that has no gradient, is its own tangent or zeros.

    The backward pass of the function is linear in its cotangents, and the derivative is its backward pass. So every op
    with a second derivative has one, and the derivative can be differentiated itself, also by tensors that the function
    refers to. It costs about three times as much as the function.

    `primals` and `tangents` are sequences of tensors with the same shapes and dtypes, which are floating or complex.
    Raises TypeError or ValueError if they are not, and RuntimeError if a gradient was computed without recorded ops, as
    in a `backward` that detaches its cotangent or uses NumPy.

    >>> import minitensor as mt
    >>> x, direction = mt.Tensor([1.0, 2.0, 3.0]), mt.Tensor([1.0, 0.0, 1.0])
    >>> y, dy = mt.jvp(lambda x: (x * x).sum(), (x,), (direction,))
    >>> y.item(), dy.item()
    (14.0, 8.0)
    """
    _check(primals, tangents)
    is_enabled = is_grad_enabled()
    with enable_grad():
        # Each argument is a tensor of its own, so that one tensor may be passed twice.
        inputs = [ops.clone(x) if x.requires_grad else x.detach().requires_grad_() for x in primals]
        outputs: list[Tensor] = []
        leaves = list(inputs)
        _open.leaves.append(leaves)
        try:
            rebuild = tree.rebuilder(function(*inputs), outputs, "mt.jvp: the function")
        finally:
            _open.leaves.pop()
        reached = [y for y in outputs if y.requires_grad]
        is_recorded = is_enabled and (
            any(t.requires_grad for t in (*primals, *tangents)) or _reaches_others(reached, leaves)
        )
        cotangents = [ones_like(y).requires_grad_() for y in reached]
        for enclosing in _open.leaves[-1:]:
            enclosing += leaves + cotangents
        pulled = grad(reached, inputs, cotangents, create_graph=True, allow_unused=True) if reached else ()
        pairs = []
        for i, (g, tangent) in enumerate(zip(pulled, tangents, strict=False)):
            if g is not None and g.requires_grad:
                pairs.append((g, tangent))
            elif g is not None and not _is_recording() and ops.any(g != 0).item():
                raise RuntimeError(
                    f"mt.jvp: the gradient with respect to primal {i} does not depend on the cotangent, because a "
                    "'backward' computes it without recorded ops; compute it with ops, and do not detach()"
                )
        found: list[Tensor | None] = [None] * len(reached)
        if pairs:
            gradients, directions = zip(*pairs, strict=True)
            found = list(grad(gradients, cotangents, directions, create_graph=is_recorded, allow_unused=True))
    pushed = {id(y): d for y, d in zip(reached, found, strict=True)}
    derivatives = [zeros_like(y.detach()) if (d := pushed.get(id(y))) is None else d for y in outputs]
    own = outputs if is_recorded else [y.detach() for y in outputs]
    return rebuild(iter(own)), rebuild(iter(derivatives))


def _check(primals: Sequence[Tensor], tangents: Sequence[Tensor]) -> None:
    for name, value in (("primals", primals), ("tangents", tangents)):
        if isinstance(value, Tensor) or not isinstance(value, Sequence):
            kind = type(value).__name__
            raise TypeError(f"mt.jvp: {name} must be a tuple of tensors, got {kind}; write (x,) for one")
    if len(primals) != len(tangents):
        counts = f"{len(primals)} primals, but {len(tangents)} tangents"
        raise ValueError(f"mt.jvp: got {counts}; pass one for each argument")
    for i, (x, t) in enumerate(zip(primals, tangents, strict=True)):
        for name, tensor in (("primal", x), ("tangent", t)):
            if not isinstance(tensor, Tensor):
                raise TypeError(f"mt.jvp: {name} {i} must be a Tensor, got {type(tensor).__name__}; use mt.asarray()")
        if not x.dtype.name.startswith(("float", "bfloat", "complex")):
            raise TypeError(f"mt.jvp: primal {i} is {x.dtype.name}, expected a floating or complex dtype; use astype()")
        if x.shape != t.shape or x.dtype != t.dtype or x.device != t.device:
            raise ValueError(
                f"mt.jvp: tangent {i} is {t.dtype.name} {t.shape} on {t.device}, expected {x.dtype.name} {x.shape} on "
                f"{x.device}, as its primal"
            )
