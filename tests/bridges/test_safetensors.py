"""The package `safetensors` reads our files, and the reverse."""

import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

import minitensor as mt

sys.path.append(str(Path(__file__).parents[1] / "python"))
from saved_training import bits
from state_samples import DTYPES, samples


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.safetensors"


#: In the package, dtypes without one in NumPy need PyTorch.
IN_NUMPY = [dtype for dtype in DTYPES if dtype not in ("bfloat16", "complex128", "complex64")]


def test_the_package_safetensors_reads_our_files_and_the_reverse(path):
    tensors = samples(IN_NUMPY)
    mt.save_state(path, tensors)
    with safetensors.safe_open(path, "numpy") as file:
        assert set(file.keys()) == tensors.keys()
        for name, t in tensors.items():
            array = file.get_tensor(name)
            assert (array.dtype.name, array.shape, array.tobytes().hex()) == (t.dtype.name, t.shape, bits(t)), name
    safetensors.numpy.save_file({name: np.asarray(t) for name, t in tensors.items()}, path, {"some": "metadata"})
    loaded = mt.load_state(path)
    assert {name: (t.dtype, t.shape, bits(t)) for name, t in loaded.items()} == {
        name: (t.dtype, t.shape, bits(t)) for name, t in tensors.items()
    }


def test_pytorch_reads_our_files_and_the_reverse(path):
    tensors = samples([dtype for dtype in DTYPES if dtype != "complex128"])
    mt.save_state(path, tensors)
    loaded = safetensors.torch.load_file(path)
    assert loaded.keys() == tensors.keys()
    for name, t in tensors.items():
        other = loaded[name]
        assert (str(other.dtype), tuple(other.shape)) == (f"torch.{t.dtype.name}", t.shape), name
        assert other.contiguous().flatten().view(torch.uint8).numpy().tobytes().hex() == bits(t), name
    safetensors.torch.save_file(loaded, path)
    assert {name: (t.dtype, t.shape, bits(t)) for name, t in mt.load_state(path).items()} == {
        name: (t.dtype, t.shape, bits(t)) for name, t in tensors.items()
    }
