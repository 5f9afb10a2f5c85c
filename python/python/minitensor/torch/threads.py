"""PyTorch's threads, on which ops compute its tensors."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import torch

from .._minitensor import _set_threads_of_pytorch

_LIBRARY = {"darwin": "libtorch_cpu.dylib", "win32": "torch_cpu.dll"}.get(sys.platform, "libtorch_cpu.so")


def share() -> None:
    """Makes calls on tensors of PyTorch run on PyTorch's threads.

    Those wait for the next loop at full speed, so threads of ours would share the cores with them. PyTorch before 2.10
    does not lend its threads.
    """
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / _LIBRARY))
        functions = [library.torch_parallel_for, library.torch_get_num_threads]
    except (OSError, AttributeError):
        return
    _set_threads_of_pytorch(torch.Tensor, *[ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions])
