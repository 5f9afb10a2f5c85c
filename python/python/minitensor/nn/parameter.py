"""What a parameter is."""

from __future__ import annotations

from typing import TypeGuard

from .._minitensor import Tensor

__all__ = ["Parameter", "is_parameter"]


def is_parameter(value: object) -> TypeGuard[Tensor]:
    """Whether a module takes a value for a parameter: a tensor that was not computed, and requires a gradient.

    That is what optimizers take, too. There is no class of parameters, so that calls meet exactly one class of tensors
    and need not ask which.
    """
    return isinstance(value, Tensor) and value.requires_grad and value.is_leaf


def Parameter(data: object, requires_grad: bool = True) -> Tensor:
    """A tensor of its own that holds a copy of `data` and requires a gradient: `Tensor(data, requires_grad=True)`.

    One that starts out frozen (`requires_grad=False`) is given to a module by `Module.register_parameter`, as nothing
    tells it from any other tensor.

    >>> import minitensor as mt
    >>> mt.nn.Parameter(mt.zeros(2))
    tensor([0., 0.], requires_grad=True)
    """
    return Tensor(data.detach() if isinstance(data, Tensor) else data, requires_grad=requires_grad)
