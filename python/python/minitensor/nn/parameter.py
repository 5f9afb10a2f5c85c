"""Parameters."""

from __future__ import annotations

from typing import TypeGuard

from .._minitensor import Tensor

__all__ = ["Parameter", "is_parameter"]


def is_parameter(value: object) -> TypeGuard[Tensor]:
    """Returns whether a value is a parameter: a leaf tensor that requires a gradient.

    Optimizers use the same criterion. There is no class for parameters, because calls are faster if all tensors have
    the same class.
    """
    return isinstance(value, Tensor) and value.requires_grad and value.is_leaf


def Parameter(data: object, requires_grad: bool = True) -> Tensor:
    """Creates a leaf tensor with a copy of `data` that requires a gradient: `Tensor(data, requires_grad=True)`.

    With `requires_grad=False`, the result is an ordinary tensor. Pass it to `Module.register_parameter` to make it a
    frozen parameter.

    >>> import minitensor as mt
    >>> mt.nn.Parameter(mt.zeros(2))
    tensor([0., 0.], requires_grad=True)
    """
    return Tensor(data.detach() if isinstance(data, Tensor) else data, requires_grad=requires_grad)
