"""Tests of the devices `cuda`: on a GPU if there is one, else on the emulated device, which runs the same kernels."""

import ctypes
import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "python"))


def has_gpu():
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False


if not has_gpu():
    os.environ["MINITENSOR_CUDA"] = "emulated"


@pytest.fixture(scope="session")
def is_emulated():
    return os.environ.get("MINITENSOR_CUDA") == "emulated"
