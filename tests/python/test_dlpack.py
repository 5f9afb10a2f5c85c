"""Tests of DLPack import and export."""

import ctypes
import gc
import types

import numpy as np
import pytest

import minitensor as mt


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64", "complex128"]
)
def test_numpy_and_minitensor_read_each_others_memory(dtype):
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
        t.__dlpack__(copy=False)
    # A capsule of the time before DLPack 1.0 cannot say so, and has a copy.
    legacy = types.SimpleNamespace(__dlpack__=lambda **_: t.__dlpack__())
    assert mt.from_dlpack(legacy).data_ptr() not in (t.data_ptr(), 0)
    with pytest.raises(ValueError, match="read-only"):
        mt.from_dlpack(a).add_(1)


def test_an_unused_capsule_is_freed():
    before = mt.memory_stats()["allocated"]
    for _ in range(10):
        mt.zeros(1000).__dlpack__()
        mt.zeros(1000).__dlpack__(max_version=(1, 0))
    gc.collect()
    assert mt.memory_stats()["allocated"] == before


def test_a_capsule_is_consumed_once():
    class Twice:
        capsule = mt.zeros(2).__dlpack__()

        def __dlpack__(self, **_):
            return self.capsule

    assert mt.from_dlpack(Twice()).tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match="has not been consumed"):
        mt.from_dlpack(Twice())


def test_gradients_and_other_devices_raise():
    with pytest.raises(BufferError, match="detach"):
        mt.Tensor([1.0], requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match=r"can only be exported there; pass dl_device=\(1, 0\)"):
        mt.zeros(1).__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="has no stream"):
        mt.zeros(1).__dlpack__(stream=1)
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


# Builds capsules field by field, as other libraries may do.


class Array(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    _fields_ = [("array", Array), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]
    NAME = b"dltensor"


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("array", Array),
    ]
    NAME = b"dltensor_versioned"


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Producer:
    """Returns a capsule of 2×3 float32 numbers. Arguments replace its fields."""

    def __init__(self, kind=Versioned, shape=(2, 3), strides=(3, 1), deleter=True, major=1, minor=0, **fields):
        self.memory = (ctypes.c_float * 6)(*range(6))
        self.deleted = 0
        self.deleter = Deleter(self.delete)
        lists = [None if numbers is None else (ctypes.c_int64 * len(numbers))(*numbers) for numbers in (shape, strides)]
        self.shape, self.strides = lists
        values = {
            "data": ctypes.addressof(self.memory),
            "device_type": 1,
            "ndim": len(shape or ()),
            "code": 2,
            "bits": 32,
            "lanes": 1,
            "shape": shape and ctypes.addressof(self.shape),
            "strides": strides and ctypes.addressof(self.strides),
        }
        self.managed = kind(array=Array(**(values | fields)))
        if deleter:
            self.managed.deleter = ctypes.cast(self.deleter, ctypes.c_void_p)
        if kind is Versioned:
            self.managed.major, self.managed.minor = major, minor

    def delete(self, _):
        self.deleted += 1

    def __dlpack__(self, **_):
        return new_capsule(ctypes.addressof(self.managed), self.managed.NAME, None)


def test_memory_of_a_capsule_that_does_not_say_is_read_only():
    with pytest.raises(ValueError, match="'add_' changes 'x' in place, but its memory is read-only; copy it first"):
        mt.from_dlpack(Producer(Legacy)).add_(1)
    producer = Producer()
    mt.from_dlpack(producer).add_(1)
    assert producer.memory[0] == 1


KINDS = pytest.mark.parametrize("kind", [Legacy, Versioned])


@KINDS
@pytest.mark.parametrize(
    "fields, expected",
    [
        ({}, [[0, 1, 2], [3, 4, 5]]),
        ({"strides": None}, [[0, 1, 2], [3, 4, 5]]),
        ({"strides": (1, 2), "shape": (2, 3)}, [[0, 2, 4], [1, 3, 5]]),
        ({"byte_offset": 8, "shape": (2,), "strides": None}, [2, 3]),
        ({"byte_offset": 20, "shape": (3,), "strides": (-2,)}, [5, 3, 1]),
        ({"shape": None, "strides": None}, 0),
        ({"shape": (1, 2), "strides": (2**63 - 1, 1)}, [[0, 1]]),
        ({"shape": (0, 3), "data": None}, []),
        ({"deleter": False}, [[0, 1, 2], [3, 4, 5]]),
    ],
)
def test_a_capsule_is_read_as_dlpack_specifies(kind, fields, expected):
    producer = Producer(kind, **fields)
    t = mt.from_dlpack(producer)
    assert t.tolist() == expected
    assert (t + 0)[None].T.tolist() == (t[None].clone().T).tolist()
    del t
    gc.collect()
    assert producer.deleted == fields.get("deleter", 1)


@KINDS
@pytest.mark.parametrize(
    "fields, error, match",
    [
        ({"ndim": -1}, ValueError, "ndim of at least 0, got -1"),
        ({"ndim": 2**31 - 1}, ValueError, "at most 64 dimensions, got 2147483647"),
        ({"shape": None, "strides": None, "ndim": 1}, ValueError, "shape of 1 dimensions is a null pointer"),
        ({"shape": (-1,), "strides": None}, ValueError, r"sizes of at least 0, got \[-1\]"),
        ({"shape": (2**62, 4), "strides": (0, 0)}, MemoryError, "more elements than memory"),
        ({"shape": (2**63 - 1,), "strides": None}, MemoryError, "more elements than memory"),
        ({"shape": (2, 3), "strides": (2**63 - 1, 1)}, ValueError, "exceed the address space"),
        ({"shape": (2, 3), "strides": (-(2**63), 1)}, ValueError, "exceed the address space"),
        ({"shape": (2, 3), "strides": (-(2**61), 1)}, ValueError, "exceed the address space"),
        ({"shape": (2, 3), "strides": (2**61, 2**61)}, ValueError, "exceed the address space"),
        ({"data": None}, ValueError, "data pointer is null"),
        ({"data": 2}, ValueError, "aligned"),
        ({"data": 4, "shape": (2, 3), "strides": (-3, 1)}, ValueError, "exceed the address space"),
        ({"byte_offset": 2**64 - 1}, ValueError, "byte_offset 18446744073709551615 exceeds the address space"),
        ({"byte_offset": 1}, ValueError, "aligned"),
        ({"lanes": 2}, TypeError, "type code 2, 32 bits, 2 lanes"),
        ({"lanes": 0}, TypeError, "0 lanes"),
        ({"bits": 1}, TypeError, "1 bits"),
        ({"bits": 0}, TypeError, "0 bits"),
        ({"code": 255}, TypeError, "type code 255"),
        ({"code": 3}, TypeError, "type code 3"),
        ({"device_type": 2}, BufferError, "device 'cuda:0' of DLPack type 2, but minitensor has no such device here"),
        ({"device_type": 2, "device_id": -1}, BufferError, "device 'cuda:-1' of DLPack type 2"),
        ({"device_type": 13}, BufferError, "device of DLPack type 13, but minitensor has no such device here; copy it"),
        ({"device_type": -1}, BufferError, "device of DLPack type -1"),
    ],
)
def test_an_invalid_capsule_raises_and_is_freed(kind, fields, error, match):
    producer = Producer(kind, **fields)
    with pytest.raises(error, match=match):
        mt.from_dlpack(producer)
    gc.collect()
    assert producer.deleted == 1


def test_another_major_version_of_dlpack_is_not_read():
    assert mt.from_dlpack(Producer(minor=99)).tolist() == [[0, 1, 2], [3, 4, 5]]
    for major in (0, 2, 2**32 - 1):
        # Only the deleter has the same offset.
        producer = Producer(major=major, ndim=-1)
        with pytest.raises(BufferError, match=f"DLPack {major}.0, but minitensor supports DLPack 1"):
            mt.from_dlpack(producer)
        assert producer.deleted == 1
