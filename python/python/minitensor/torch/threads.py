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
    parallel_for, num_threads = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions)
    _set_threads_of_pytorch(torch.Tensor, parallel_for, num_threads, not is_fork())


def is_fork() -> bool:
    """Whether the process is a copy of another one, whose threads it lacks, on Linux."""
    try:
        stat = Path("/proc/self/stat").read_text()
    except OSError:
        return False
    # The seventh field after the name of the program has the flags of the process: PF_FORKNOEXEC.
    return bool(int(stat.rpartition(")")[2].split()[6]) & 0x40)
