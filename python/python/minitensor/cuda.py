"""NVIDIA GPUs, the devices `cuda`.

The NVIDIA driver, its compiler NVRTC and cuBLAS are loaded when they are first needed. NVRTC and cuBLAS are found where
the system finds libraries, and in the packages `nvidia-cuda-nvrtc` and `nvidia-cublas`, which PyTorch installs, too.
"""

import sys

from . import _minitensor
from ._minitensor import Device


def is_available() -> bool:
    """Returns whether tensors can be created with `device="cuda"`."""
    return device_count() > 0


def device_count() -> int:
    """Returns the number of GPUs."""
    return _minitensor.cuda_device_count()


def get_device_name(device: Device | str | None = None) -> str:
    """Returns the name of a GPU: by default, of the first."""
    return _minitensor.cuda_device_name(device)


def mem_get_info(device: Device | str | None = None) -> tuple[int, int]:
    """Returns the free bytes and all bytes of a GPU's memory."""
    return _minitensor.cuda_memory(device)


def synchronize(device: Device | str | None = None) -> None:
    """Waits until a GPU has computed all calls of this thread.

    Raises:
        IndexError: a call got an index that was out of range. Calls return before the GPU has computed them, so the
            error is raised here, or when elements are read.
    """
    _minitensor.cuda_synchronize(device)


_minitensor.add_cuda_packages([folder for folder in sys.path if folder])
