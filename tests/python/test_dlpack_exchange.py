"""DLPack's exchange API, as a consumer written in C calls it."""

import ctypes
import gc
import threading

import numpy as np
import pytest
from test_dlpack import Array, Deleter, Producer, Versioned

import minitensor as mt

ERROR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
Managed = ctypes.POINTER(Versioned)


class Api(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        (
            "allocate",
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Array), ctypes.POINTER(Managed), ctypes.c_void_p, ERROR),
        ),
        ("from_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Managed))),
        ("to_object", ctypes.PYFUNCTYPE(ctypes.c_int, Managed, ctypes.POINTER(ctypes.c_void_p))),
        ("view", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Array))),
        ("stream", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))),
    ]


pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype = ctypes.c_void_p
pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
API = Api.from_address(pointer_of(mt.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def delete(managed):
    Deleter(managed.contents.deleter)(ctypes.addressof(managed.contents))


def exported(tensor):
    managed = Managed()
    assert API.from_object(tensor, managed) == 0
    return managed


def imported(managed):
    out = ctypes.c_void_p()
    assert API.to_object(managed, out) == 0
    made = ctypes.cast(out, ctypes.py_object).value
    # The function returns a new reference.
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(made))
    return made


def sizes(array):
    lists = (ctypes.c_int64 * array.ndim).from_address
    return list(lists(array.shape)) if array.ndim else [], list(lists(array.strides)) if array.ndim else []


def test_the_table_is_complete():
    assert (API.major, API.minor, API.previous) == (1, 3, None)
    assert API.allocate and API.from_object and API.to_object and API.view and API.stream
    stream = ctypes.c_void_p(1)
    assert API.stream(1, 0, stream) == 0 and stream.value is None


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float32", "complex128"])
def test_an_exported_tensor_is_the_same_memory(dtype):
    t = mt.zeros((2, 3), dtype=dtype).T
    for make in (lambda: exported(t), lambda: None):
        managed, view = make(), Array()
        if managed is None:
            assert API.view(t, view) == 0
        array = managed.contents.array if managed else view
        assert (array.data, array.device_type, array.device_id, array.byte_offset) == (t.data_ptr(), 1, 0, 0)
        assert (array.bits, array.lanes, sizes(array)) == (t.itemsize * 8, 1, ([3, 2], [1, 3]))
        if managed:
            assert (managed.contents.major, managed.contents.minor, managed.contents.flags) == (1, 3, 0)
            delete(managed)
    scalar = Array()
    assert API.view(mt.ones(()), scalar) == 0 and scalar.ndim == 0


def test_an_array_that_is_exported_and_imported_keeps_its_memory():
    before = mt.memory_stats()["allocated"]
    t = mt.ones(1000)
    address = t.data_ptr()
    managed = exported(t)
    del t
    gc.collect()
    assert mt.memory_stats()["allocated"] > before
    again = imported(managed)
    assert again.data_ptr() == address and again.sum().item() == 1000
    del again
    gc.collect()
    assert mt.memory_stats()["allocated"] == before


def test_what_cannot_be_exported_raises():
    managed, view = Managed(), Array()
    for function, out in ((API.from_object, managed), (API.view, view)):
        with pytest.raises(BufferError, match=r"does not support gradients; detach\(\)"):
            function(mt.ones(1, requires_grad=True), out)
        with pytest.raises(RuntimeError, match="meta"):
            function(mt.ones(1, device="meta"), out)
        with pytest.raises(TypeError, match="Tensor"):
            function([1], out)
        with pytest.raises(RuntimeError, match="uninitialized"):
            function(mt.Tensor.__new__(mt.Tensor), out)
    assert not managed


def test_read_only_memory_is_marked_and_not_lent_without_the_mark():
    memory = np.ones(2)
    memory.flags.writeable = False
    t = mt.asarray(memory)
    managed = exported(t)
    assert managed.contents.flags == 1
    with pytest.raises(ValueError, match="read-only"):
        imported(managed).add_(1)
    with pytest.raises(BufferError, match="read-only, which a DLTensor cannot express"):
        API.view(t, Array())


@pytest.mark.parametrize("fields", [{"ndim": -1}, {"device_type": 2}, {"lanes": 2}, {"major": 2}])
def test_an_array_that_cannot_be_imported_raises_and_is_freed(fields):
    producer, out = Producer(**fields), ctypes.c_void_p()
    with pytest.raises((BufferError, TypeError, ValueError)):
        API.to_object(ctypes.pointer(producer.managed), out)
    gc.collect()
    assert producer.deleted == 1


def test_the_allocator_makes_tensors_and_reports_errors():
    errors = []
    report = ERROR(lambda context, kind, message: errors.append((context, kind, message)))
    shape = (ctypes.c_int64 * 2)(2, 3)
    prototype = Array(device_type=1, ndim=2, code=2, bits=32, lanes=1, shape=ctypes.addressof(shape))
    managed = Managed()
    # A PYFUNCTYPE keeps the interpreter, a CFUNCTYPE releases it.
    assert API.allocate(prototype, managed, None, report) == 0
    made = imported(managed)
    assert (made.shape, made.dtype) == ((2, 3), mt.float32)
    for change, kind, words in (
        ({"device_type": 2}, b"ValueError", b"DLPack type 2"),
        ({"code": 9}, b"TypeError", b"type code 9"),
        ({"ndim": -1}, b"ValueError", b"ndim"),
        ({"shape": None}, b"ValueError", b"null pointer"),
    ):
        wrong = Array.from_buffer_copy(prototype)
        for name, value in change.items():
            setattr(wrong, name, value)
        assert API.allocate(wrong, managed, 7, report) == -1
        context, got, message = errors.pop()
        assert (context, got) == (7, kind) and words in message
    shape[:] = (2**40, 2**40)
    assert API.allocate(prototype, managed, None, report) == -1 and errors.pop()[1] == b"MemoryError"
    assert not errors


def test_exchange_on_many_threads_frees_all_memory():
    before = mt.memory_stats()["allocated"]
    faults, held = [], []

    def work(seed):
        try:
            for k in range(200):
                t = mt.full(100, float(seed))
                managed = exported(t)
                del t
                if k % 3 == 0:
                    delete(managed)
                    continue
                again = imported(managed)
                assert np.from_dlpack(again)[-1] == seed
                held.append(again)
                if k % 7 == 0:
                    held.clear()
                    gc.collect()
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    held.clear()
    gc.collect()
    assert mt.memory_stats()["allocated"] == before
