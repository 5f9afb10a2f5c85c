"""The affine layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import ops
from .._minitensor import Tensor, rand
from .module import Module

if TYPE_CHECKING:
    from .._minitensor import DeviceLike, DTypeLike

__all__ = ["Linear"]


class Linear(Module):
    """`x @ weight.T + bias`, over the last axis of `x`.

    `weight` has the shape `(out_features, in_features)`, and `bias` the shape `(out_features,)`. Both are initialized
    uniformly in ±1/√in_features (He et al., 2015, with a = √5), as in PyTorch.

    >>> import minitensor as mt
    >>> layer = mt.nn.Linear(3, 2)
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    >>> layer(mt.zeros((5, 3))).shape
    (5, 2)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        for name, size in (("in_features", in_features), ("out_features", out_features)):
            if not isinstance(size, int) or size < 0:
                raise ValueError(f"Linear: {name} must be an integer of at least 0, got {size!r}")
        self.in_features = in_features
        self.out_features = out_features
        bound = 1 / math.sqrt(in_features) if in_features else 0.0

        def uniform(*shape: int) -> Tensor:
            values = rand(shape, dtype=dtype, device=device) * (2 * bound) - bound
            return values.detach().requires_grad_()

        self.weight = uniform(out_features, in_features)
        self.bias: Tensor | None = uniform(out_features) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 0 or x.shape[-1] != self.in_features:
            raise ValueError(
                f"{self!r} takes tensors whose last axis has length {self.in_features}, got shape {x.shape}"
            )
        return ops.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
