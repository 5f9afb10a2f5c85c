"""Which calls may skip PyTorch's dispatcher.

Plain tensors can go to a kernel directly: their memory has their values, and PyTorch need not see the call, since it
does not compile, trace or transform a function.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

from .._minitensor import _set_dispatcher

_grad_enabled = torch.is_grad_enabled

#: Functions whose results are true if PyTorch must see calls: in transforms, in modes, and while it traces.
_OBSERVERS = (
    torch._C._functorch.peek_interpreter_stack,
    torch._C._len_torch_dispatch_stack,
    torch._C._len_torch_function_stack,
    torch._C._get_tracing_state,
)


def make_known() -> None:
    """Makes the dispatcher known to the functions of ops."""
    _set_dispatcher(
        {
            "classes": [Tensor, Parameter],
            "observers": _OBSERVERS,
            "forward_ad": vars(forward_ad),
            "is_grad_enabled": _grad_enabled,
            "is_batched": torch._C._functorch.is_legacy_batchedtensor,
            "is_neg": Tensor.is_neg,
            "is_conj": Tensor.is_conj,
        }
    )


def need_gradient(tensors: Iterable[Tensor | None]) -> bool:
    """Whether a backward pass may need the gradient of one of the tensors."""
    if _grad_enabled():
        for t in tensors:
            if t is not None and t.requires_grad:
                return True
    return False
