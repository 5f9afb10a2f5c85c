"""Every op of minitensor as a PyTorch op.

`minitensor.torch.<op>(…)` takes and returns `torch.Tensor`s, with the least overhead. The same op is in PyTorch's
dispatcher as `torch.ops.minitensor.<op>`; an op of a namespace is `torch.ops.minitensor.<namespace>__<op>`. Both work in
eager code, under `torch.compile`, and with autograd. Ops that are registered later are added to both.

>>> import torch
>>> import minitensor.torch
>>> x = torch.tensor([-1.0, 0.0, 1.0], requires_grad=True)
>>> minitensor.torch.swish(x).sum().backward()
>>> x.grad
tensor([0.0723, 0.5000, 0.9277])
"""

from __future__ import annotations

from typing import Any

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "minitensor.torch needs PyTorch, which is not installed; install it with: pip install torch"
    ) from error

from .namespace import Namespace
from .registration import call, register

__all__ = ["call", "register"]

register()
_ops = Namespace("minitensor.torch", "")


def __getattr__(name: str) -> Any:
    return getattr(_ops, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_ops)})
