"""DLPack, both ways."""

import gc

import numpy as np
import pytest

import minitensor as mt


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64", "complex128"]
)
def test_numpy_reads_our_memory_and_we_its(dtype):
    t = mt.Tensor([[1, 0], [1, 1]], dtype=dtype)
    a = np.from_dlpack(t.T)
    assert a.ctypes.data == t.data_ptr()
    assert a.tolist() == t.T.tolist()
    b = np.ones((2, 3), dtype=dtype)[:, ::-1]
    back = mt.from_dlpack(b)
    assert back.tolist() == b.tolist()
    assert np.shares_memory(back.numpy(), b)


def test_read_only_memory_stays_read_only():
    a = np.zeros(2)
    a.flags.writeable = False
    t = mt.from_numpy(a)
    assert not np.from_dlpack(t).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()
    with pytest.raises(ValueError, match="read-only"):
        mt.from_dlpack(a).add_(1)


def test_a_capsule_nobody_takes_is_freed():
    before = mt.memory_stats()["allocated"]
    for _ in range(10):
        mt.zeros(1000).__dlpack__()
        mt.zeros(1000).__dlpack__(max_version=(1, 0))
    gc.collect()
    assert mt.memory_stats()["allocated"] == before


def test_a_capsule_is_taken_once():
    class Twice:
        capsule = mt.zeros(2).__dlpack__()

        def __dlpack__(self, **_):
            return self.capsule

    assert mt.from_dlpack(Twice()).tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match="used already"):
        mt.from_dlpack(Twice())


def test_gradients_and_devices_are_refused():
    with pytest.raises(BufferError, match="detach"):
        mt.Tensor([1.0], requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="on the CPU"):
        mt.zeros(1).__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError, match="__dlpack__"):
        mt.from_dlpack([1])
    assert mt.zeros(1).__dlpack_device__() == (1, 0)


def test_copies_are_copies():
    t = mt.zeros(2)
    assert np.from_dlpack(t, copy=True).ctypes.data != t.data_ptr()
    a = np.zeros(2)
    assert mt.from_dlpack(a, copy=True).data_ptr() != a.ctypes.data


def test_the_producer_lives_as_long_as_the_tensor():
    t = mt.from_dlpack(np.arange(1000))
    gc.collect()
    assert t.sum().item() == 499500
