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

from .._minitensor import _has_cuda

_grad_enabled = torch.is_grad_enabled
_is_compiling = torch.compiler.is_compiling
_transforms = torch._C._functorch.peek_interpreter_stack
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_tracing = torch._C._get_tracing_state
_strided = torch.strided
_is_batched = torch._C._functorch.is_legacy_batchedtensor


def is_observed() -> bool:
    """Whether PyTorch must see calls."""
    return (
        _is_compiling()
        or _transforms() is not None
        or bool(_dispatch_modes())
        or bool(_function_modes())
        or _tracing() is not None
        or forward_ad._current_level >= 0
    )


def need_gradient(tensors: Iterable[Tensor | None]) -> bool:
    """Whether a backward pass may need the gradient of one of the tensors."""
    if _grad_enabled():
        for t in tensors:
            if t is not None and t.requires_grad:
                return True
    return False


def are_plain(tensors: Iterable[Tensor | None]) -> bool:
    """Whether kernels of minitensor read the tensors: their memory has their values, on a device of minitensor."""
    for t in tensors:
        if t is None:
            continue
        kind = type(t)
        if (kind is not Tensor and kind is not Parameter) or t.layout is not _strided:
            return False
        if not (t.is_cpu or (t.is_cuda and _has_cuda())):
            return False
        if t.is_neg() or t.is_conj() or _is_batched(t):
            return False
    return True
