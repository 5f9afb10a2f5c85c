"""Exchanges by DLPack with CUDA devices that a plugin simulates. `test_dlpack_cuda.py` runs each case in a process."""

import ctypes
import gc
import sys

import numpy as np
from minitensor._minitensor import _array_function, _cuda_stream, _gradient, _has_cuda, _set_cuda_stream
from test_dlpack import Array, Legacy, Producer, Versioned
from test_dlpack_exchange import API, ERROR, Api, Managed, delete, exported, imported, pointer_of

import minitensor as mt
from minitensor import plugins

#: The simulated memory cannot be read by addresses with this bit.
TAG = 1 << 62


class CudaProducer(Producer):
    """An array on a simulated CUDA device, which records the stream that a consumer passes."""

    def __init__(self, kind=Versioned, index=0, **fields):
        super().__init__(kind, device_type=2, device_id=index, **fields)
        self.managed.array.data |= TAG
        self.index, self.keywords = index, None

    def __dlpack_device__(self):
        return 2, self.index

    def __dlpack__(self, **keywords):
        if isinstance(self.managed, Legacy) and "max_version" in keywords:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.keywords = keywords
        return super().__dlpack__()


class Foreign:
    """An array of a library that exchanges arrays by DLPack's exchange API, and computes on the stream `stream`."""

    stream = 0x1000

    def __init__(self, tensor):
        self.tensor = tensor

    def __setitem__(self, index, value):
        self.tensor[index] = value


def from_foreign(array, out):
    out[0] = exported(array.tensor)
    return 0


def to_foreign(managed, out):
    made = Foreign(imported(managed))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    out[0] = id(made)
    return 0


def stream_of_foreign(kind, index, out):
    assert (kind, index) == (2, 0)
    out[0] = Foreign.stream
    return 0


FIELDS = dict(Api._fields_)
FOREIGN = Api(
    major=1,
    minor=3,
    from_object=FIELDS["from_object"](from_foreign),
    to_object=FIELDS["to_object"](to_foreign),
    stream=FIELDS["stream"](stream_of_foreign),
)
new_capsule = ctypes.pythonapi.PyCapsule_New
Foreign.__dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(FOREIGN), b"dlpack_exchange_api", None)


def raises(error, words, call):
    try:
        call()
    except error as found:
        assert words in str(found), found
    else:
        raise AssertionError(f"no {error.__name__}")


def memory_is_imported_without_a_copy():
    for kind in (Versioned, Legacy):
        for index in (0, 1):
            producer = CudaProducer(kind, index)
            t = mt.from_dlpack(producer)
            assert t.device == f"cuda:{index}" and t.data_ptr() == producer.managed.array.data
            assert t.tolist() == [[0, 1, 2], [3, 4, 5]]
            assert producer.keywords["stream"] == 1 and producer.deleted == 0
            # Kernels read the memory, and changes in place write to it.
            assert (t + t).device == t.device and (t.T * t.T).tolist() == [[0, 9], [1, 16], [4, 25]]
            if kind is Versioned:
                t[0, 1] = 7.0
                assert producer.memory[1] == 7 and t[1:].tolist() == [[3, 4, 5]]
            else:
                raises(ValueError, "read-only", lambda t=t: t.add_(1.0))
            raises(RuntimeError, "whose memory the CPU does not read; copy it with to('cpu')", t.numpy)
            del t
            gc.collect()
            assert producer.deleted == 1
    empty = mt.from_dlpack(CudaProducer(shape=(0, 3)))
    assert (empty.device, empty.shape) == ("cuda", (0, 3))


def read_only_memory_is_not_changed():
    producer = CudaProducer()
    producer.managed.flags = 1
    t = mt.from_dlpack(producer)
    raises(ValueError, "read-only", lambda: t.add_(1.0))


def a_producer_gets_the_current_stream():
    producer = CudaProducer(index=1)
    assert _set_cuda_stream(1, 0x5000) == 0 and (_cuda_stream(0), _cuda_stream(1)) == (0, 0x5000)
    t = mt.from_dlpack(producer, copy=False)
    assert producer.keywords == {"stream": 0x5000, "max_version": (1, 3), "copy": False}
    assert _set_cuda_stream(1, 0) == 0x5000
    assert t.sum(dtype="float64").device == "cuda:1"
    # In an exchange of the exchange API, libraries ask for the stream.
    found = ctypes.c_void_p()
    for stream in (0, 0x6000):
        _set_cuda_stream(0, stream)
        assert API.stream(2, 0, found) == 0 and (found.value or 0) == stream


def tensors_are_exported_without_a_copy():
    t = mt.Tensor([[1.0, 2.0], [3.0, 4.0]], device="cuda:1")
    assert t.__dlpack_device__() == (2, 1)
    for stream in (None, 1, 2, 0x7000, -1):
        capsule = t.T.__dlpack__(stream=stream, max_version=(1, 0), dl_device=(2, 1))
        array = Versioned.from_address(pointer_of(capsule, b"dltensor_versioned")).array
        assert (array.data, array.device_type, array.device_id) == (t.data_ptr(), 2, 1)
        del capsule
    managed = exported(t)
    again = imported(managed)
    assert (again.data_ptr(), again.device, again.tolist()) == (t.data_ptr(), t.device, t.tolist())
    assert mt.from_dlpack(t).data_ptr() == t.data_ptr()
    array = Array()
    assert API.view(t, array) == 0 and (array.device_type, array.device_id, array.data) == (2, 1, t.data_ptr())
    on_cpu = np.from_dlpack(t, device="cpu") if "device" in (np.from_dlpack.__text_signature__ or "") else None
    assert on_cpu is None or on_cpu.tolist() == t.tolist()
    capsule = t.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
    managed = Versioned.from_address(pointer_of(capsule, b"dltensor_versioned"))
    assert (managed.array.device_type, managed.flags) == (1, 2)


def what_a_consumer_may_not_ask_is_an_error():
    t = mt.ones(2, device="cuda")
    raises(
        BufferError, "stream=0 is not a stream; pass 1 for the legacy default stream", lambda: t.__dlpack__(stream=0)
    )
    raises(BufferError, "stream=-2 is not a stream", lambda: t.__dlpack__(stream=-2))
    raises(TypeError, "stream must be an integer or None, got <class 'str'>", lambda: t.__dlpack__(stream="1"))
    for target, copy in (((2, 1), None), ((1, 0), False)):
        message = "a tensor on device 'cuda' can only be exported there; pass dl_device=(2, 0) or None"
        raises(BufferError, message, lambda target=target, copy=copy: t.__dlpack__(dl_device=target, copy=copy))
    raises(BufferError, "detach", mt.ones(2, device="cuda", requires_grad=True).__dlpack__)
    raises(
        BufferError,
        "on device 'cuda:2' of DLPack type 2, but minitensor",
        lambda: mt.from_dlpack(CudaProducer(index=2)),
    )
    raises(BufferError, "device of DLPack type 13", lambda: mt.from_dlpack(Producer(device_type=13)))


def memory_is_allocated_for_libraries():
    shape, managed, errors = (ctypes.c_int64 * 2)(2, 3), Managed(), []
    report = ERROR(lambda context, kind, message: errors.append(message))
    prototype = Array(device_type=2, device_id=1, ndim=2, code=2, bits=32, lanes=1, shape=ctypes.addressof(shape))
    assert API.allocate(prototype, managed, None, report) == 0
    made = imported(managed)
    assert (made.device, made.shape) == ("cuda:1", (2, 3))
    for kind, index in ((2, 2), (3, 0)):
        prototype.device_type, prototype.device_id = kind, index
        assert API.allocate(prototype, managed, None, report) == -1 and b"makes no arrays on" in errors.pop()


def memory_is_freed_in_the_order_of_the_stream_of_its_export():
    def held():
        gc.collect()
        return mt.ops.cuda_toy.held(mt.zeros(1, dtype="float64", device="cuda")).item()

    before = held()
    _set_cuda_stream(0, 0x8000)
    managed = exported(mt.ones(100, device="cuda"))
    _set_cuda_stream(0, 0)
    assert held() == before + 400
    delete(managed)
    assert held() == before and _cuda_stream(0) == 0


def an_op_computes_on_the_stream_of_a_library():
    seen = []

    @mt.custom_op
    def observed(x, y):
        seen.append((_cuda_stream(0), x.device.type))
        return x * y + y

    x, y = (mt.Tensor(v, dtype="float64", device="cuda") for v in ([1.0, 2.0], [3.0, 4.0]))
    found = _array_function("observed")(Foreign(x), Foreign(y))
    assert type(found) is Foreign and found.tensor.tolist() == [6, 12] and found.tensor.device == "cuda"
    gradients = _gradient("observed", [Foreign(y), Foreign(x), Foreign(y)], {}, [[True, False]], [])
    assert [g.tensor.tolist() for g in gradients] == [[9, 16]]
    assert set(seen) == {(Foreign.stream, "cuda")} and _cuda_stream(0) == 0
    # Arrays are changed in place.
    _array_function("add_")(Foreign(x), Foreign(y))
    assert x.tolist() == [4, 6]
    # The stream is restored after an error, too.
    raises(
        RuntimeError,
        "'y' is on device 'cpu'",
        lambda: _array_function("add")(Foreign(x), Foreign(mt.ones(2, dtype="float64"))),
    )
    assert _cuda_stream(0) == 0
    # On the CPU there is no stream.
    assert _array_function("add")(Foreign(mt.ones(1)), Foreign(mt.ones(1))).tensor.tolist() == [2]


if __name__ == "__main__":
    _, plugin, case = sys.argv
    plugins.load_plugin(plugin)
    assert _has_cuda()
    globals()[case]()
    print("passed")
