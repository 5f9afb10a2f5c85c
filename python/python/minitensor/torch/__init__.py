"""Every op of minitensor as a PyTorch op.

`minitensor.torch.<op>(…)` takes and returns `torch.Tensor`s, with the least overhead. The same op is in PyTorch's
dispatcher as `torch.ops.minitensor.<op>`; an op of a namespace is `torch.ops.minitensor.<namespace>__<op>`. Both work
in eager code, under `torch.compile`, and with autograd. Ops that are registered later are added to both.

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

from .. import ops as _our_ops
from . import plain as _plain
from . import threads as _threads
from .fakes import register_fake
from .registration import call, decompositions, register, register_sharding

__all__ = ["call", "decompositions", "register", "register_fake", "register_sharding"]

_plain.make_known()
_threads.share()
register()


def __getattr__(name: str) -> Any:
    # The op may be that of a plugin, which is loaded if `mt.ops` is asked for it.
    if not name.startswith("_") and hasattr(_our_ops, name) and name in globals():
        return globals()[name]
    raise AttributeError(f"'minitensor.torch' has no op '{name}'; dir(mt.ops) lists the ops")
