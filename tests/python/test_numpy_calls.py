"""Ops called with arrays of NumPy."""

import gc
import weakref

import numpy as np
import pytest

import minitensor as mt

DTYPES = [
    "bool",
    "int8",
    "uint16",
    "int32",
    "uint64",
    "longlong",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_result_is_an_array_of_the_dtype_that_a_tensor_has(dtype):
    a = np.array([[1, 0, 1], [0, 1, 1]], dtype=dtype)
    for x in (a, a.T, a[:, ::-1], a[::2, 1:], a[0, 0].reshape(()), a[:0]):
        out = mt.ops.positive(x) if dtype != "bool" else mt.ops.logical_not(x)
        assert type(out) is np.ndarray
        assert (out.dtype, out.shape) == (x.dtype, x.shape)
        np.testing.assert_array_equal(out, x if dtype != "bool" else ~x)
        assert out.flags.writeable


def test_scalars_and_arrays_without_dimensions_become_arrays_without_dimensions():
    for x in (np.array(1.0), np.float64(1.0), np.float32(1.0)):
        out = mt.ops.negative(x)
        assert type(out) is np.ndarray and (out.shape, out.dtype, float(out)) == ((), x.dtype, -1.0)
    assert isinstance(mt.ops.negative(1.0), mt.Tensor)


def test_scalars_of_numpy_have_their_dtype_and_python_numbers_have_none():
    a = np.ones(2, "float32")
    assert mt.ops.add(a, 2.0).dtype == "float32" and mt.ops.add(2, a).dtype == "float32"
    assert mt.ops.add(a, np.float64(2)).dtype == "float64"
    assert mt.ops.multiply(a, np.complex128(1j)).dtype == "complex128"
    assert mt.ops.add(np.ones(2, "int8"), np.int64(1)).dtype == "int64"
    # Among tensors, NumPy's float64 is a Python float.
    assert mt.ops.add(mt.ones(2), np.float64(2)).dtype == mt.float32


class Plain(np.ndarray):
    """A subclass with the rules of arrays."""


class Guarded(np.ndarray):
    """A subclass with its own rules."""

    def __array_ufunc__(self, *_, **__):
        return NotImplemented


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_subclasses_keep_their_class_as_in_numpy():
    x = np.ones((2, 3)).view(Plain)
    assert type(mt.ops.tanh(x)) is Plain and type(mt.ops.tanh(x[:1])) is Plain
    assert [type(part) for part in mt.ops.sort(x)] == [Plain, Plain]
    m = np.matrix([[1.0, 2.0]])
    assert type(mt.ops.add(np.ones((1, 2)), m)) is np.matrix
    # The highest priority wins.
    assert type(mt.ops.add(x[0], m.repeat(3, 1)[:, :3])) is type(np.add(x[0], m.repeat(3, 1)[:, :3]))
    assert isinstance(mt.ops.add(x, mt.ones(3)), mt.Tensor)


def test_a_memory_map_becomes_an_array(tmp_path):
    x = np.memmap(tmp_path / "x", "float32", "w+", shape=(4,))
    assert type(mt.ops.add(x, 1)) is type(np.add(x, 1)) and mt.ops.add(x, 1).tolist() == [1.0] * 4
    mt.ops.add_(x, 2)
    assert x.tolist() == [2.0] * 4


def test_arrays_whose_meaning_would_be_lost_raise():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    with pytest.raises(
        TypeError, match=r"op 'swish': input 'x': a masked array .* its mask would be lost; pass x.filled"
    ):
        mt.ops.swish(masked)
    for convert in (mt.asarray, mt.Tensor, mt.from_numpy):
        with pytest.raises(TypeError, match="its mask would be lost"):
            convert(masked)
    with pytest.raises(
        TypeError, match=r"op 'swish': input 'x': .*Guarded computes with its own rules.*np.asarray\(x\)"
    ):
        mt.ops.swish(np.ones(2).view(Guarded))


@pytest.mark.parametrize(
    "x", [np.array(["a"]), np.array([object()]), np.ones(1, np.longdouble), np.zeros(1, "M8[s]"), np.zeros(1, "f4,i4")]
)
def test_unsupported_dtypes_raise_with_the_names_of_op_and_input(x):
    with pytest.raises(TypeError, match=r"op 'add': input 'y': the NumPy dtype .* is not supported; convert"):
        mt.ops.add(np.ones(1), x)
    with pytest.raises(TypeError, match=r"op 'concat': input 'tensors\[1\]': the NumPy dtype"):
        mt.ops.concat([np.ones(1), x])


def test_other_byte_orders_and_unaligned_arrays_are_read():
    big = np.array([1.0, 2.0], ">f4")
    assert mt.ops.negative(big).tolist() == [-1.0, -2.0] and mt.ops.negative(big).dtype.isnative
    bytes_ = np.zeros(9, "u1")
    unaligned = bytes_[1:].view("f4")
    unaligned[:] = [3.0, 4.0]
    uneven = np.zeros(2, [("a", "i1"), ("b", "f4")])["b"]
    assert mt.ops.negative(unaligned).tolist() == [-3.0, -4.0] and mt.ops.exp(uneven).tolist() == [1.0, 1.0]
    for x in (big, unaligned, uneven):
        with pytest.raises(ValueError, match="op 'add_': input 'x': .*byte order or the layout"):
            mt.ops.add_(x, 1.0)


def test_a_change_in_place_changes_the_array():
    a = np.arange(6.0).reshape(2, 3)
    view = a[:, ::2]
    assert mt.ops.add_(view, 10) is view
    assert a.tolist() == [[10, 1, 12], [13, 4, 15]]
    assert mt.ops.multiply_(a, a) is a and a[0, 1] == 1
    for scalar in (np.float32(1), np.float64(1)):
        with pytest.raises(TypeError, match="scalars cannot be changed in place"):
            mt.ops.add_(scalar, 1)
    for fixed in (np.broadcast_to(np.ones(1), (3,)), np.frombuffer(b"12345678")):
        with pytest.raises(ValueError, match="read-only"):
            mt.ops.add_(fixed, 1.0)
        assert mt.ops.add(fixed, 1.0).flags.writeable


def test_an_array_is_not_changed_by_a_tensor_that_requires_a_gradient():
    a, t = np.ones(2, "float32"), mt.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"op 'add_' changes an array in place by a tensor that requires a gradient"):
        mt.ops.add_(a, t)
    assert a.tolist() == [1.0, 1.0]
    with mt.no_grad():
        mt.ops.add_(a, t)
    assert a.tolist() == [2.0, 2.0]


def test_with_a_tensor_the_result_is_a_tensor_with_its_gradient():
    t = mt.ones(2, requires_grad=True)
    for out in (
        mt.ops.multiply(np.full(2, 3.0, "f4"), t),
        mt.ops.multiply(t, np.full(2, 3.0, "f4")),
        mt.ops.stack([np.ones(2, "f4"), t]),
    ):
        assert isinstance(out, mt.Tensor) and out.requires_grad


def test_lists_and_several_outputs_consist_of_arrays():
    a, b = np.ones(1), np.full(2, 2.0)
    for out in (mt.ops.concat([a, b]), mt.ops.concat((a, b)), mt.ops.concat(a, b), mt.ops.concat([a, b], axis=0)):
        assert type(out) is np.ndarray and out.tolist() == [1.0, 2.0, 2.0]
    assert isinstance(mt.ops.concat([a, mt.ones(1)]), mt.Tensor)
    values, indices = mt.ops.sort(np.array([3.0, 1.0]))
    assert (type(values), type(indices)) == (np.ndarray, np.ndarray) and indices.dtype == "int64"


VIEWS = {
    "reshape": lambda x: mt.ops.reshape(x, (3, 2)),
    "transpose": lambda x: mt.ops.transpose(x, 0, 1),
    "expand": lambda x: mt.ops.expand(x, (2, 2, 3)),
    "astype": lambda x: mt.ops.astype(x, "float64"),
    "real": lambda x: mt.ops.real(x),
    "contiguous": lambda x: mt.ops.contiguous(x),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_result_shares_no_memory_with_an_input(view):
    t = mt.zeros((2, 3), dtype="float64")
    for x in (np.zeros((2, 3)), t.numpy(), t.numpy()[:, ::-1], np.zeros((4, 3))[::2], np.asarray(memoryview(t))):
        out = view(x)
        assert not np.shares_memory(out, x)
        out[...] = 1
        assert not x.any()


def test_arrays_of_tensors_are_the_same_memory_again():
    t = mt.zeros(4)
    for a in (t.numpy(), np.asarray(t), np.asarray(memoryview(t)), t.numpy()[1:][:2]):
        back = mt.asarray(a)
        back[0] = 5
        assert a[0] == 5 and back.data_ptr() == a.ctypes.data
    assert t.numpy().base is t


def test_arrays_and_their_memory_are_freed():
    def lives(make):
        x = make().view(Plain)
        alive = weakref.ref(x)
        out = mt.ops.exp(x)
        del x
        return alive() is not None, out

    assert lives(lambda: np.ones(8))[0] is False
    shared = mt.asarray(np.ones(8))
    gc.collect()
    assert shared.sum().item() == 8
    before = mt.memory_stats()["allocated"]
    for _ in range(10):
        mt.ops.exp(np.ones(1000))
        mt.zeros(1000).numpy()[3:]
    assert mt.memory_stats()["allocated"] == before


def test_halves_of_ml_dtypes_are_bfloat16():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    a = np.ones((2, 3), bfloat16)
    out = mt.ops.add(a.T, a.T)
    assert (out.dtype, out.shape, out.tolist()) == (bfloat16, (3, 2), [[2, 2]] * 3)
    mt.ops.add_(a, 1)
    assert a.tolist() == [[2] * 3] * 2
    assert mt.ops.add(a, np.ones(3, bfloat16).astype(">f4")).dtype == "float32"
