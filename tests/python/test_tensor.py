"""Tests of creating tensors from data, their properties, and conversion to Python."""

import copy
import pickle
import weakref

import numpy as np
import pytest

import minitensor as mt

NAMES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.5, "float32"),
        (1, "int64"),
        (True, "bool"),
        (1j, "complex64"),
        ([1, 2.0], "float32"),
        ([True, 2], "int64"),
        ([], "float32"),
    ],
)
def test_python_numbers_have_the_default_dtypes(data, dtype):
    assert mt.Tensor(data).dtype == dtype


def test_nested_lists_keep_their_shape():
    t = mt.Tensor([[[1, 2, 3]], [[4, 5, 6]]])
    assert t.shape == (2, 1, 3)
    assert t.tolist() == [[[1, 2, 3]], [[4, 5, 6]]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([[1, 2], [3]], r"data\[1\] has length 1"),
        ([[1], 2], r"data\[1\] is a number"),
        ([1, [2]], r"data\[1\] is a list"),
        ([[], [1]], r"data\[1\] has length 1"),
    ],
)
def test_ragged_lists_raise_and_name_the_position(data, words):
    with pytest.raises(ValueError, match=words):
        mt.Tensor(data)


@pytest.mark.parametrize("data", ["text", object(), {"a": 1}, [None], ["a"], None])
def test_a_value_that_is_not_a_number_raises_a_type_error(data):
    with pytest.raises(TypeError, match="expected a number, nested lists"):
        mt.Tensor(data)


def test_a_list_that_holds_itself_raises():
    data = []
    data.append(data)
    with pytest.raises(ValueError, match="nested more than"):
        mt.Tensor(data)


@pytest.mark.parametrize(
    ("data", "dtype", "words"),
    [
        ([300], "int8", "300 does not fit into int8"),
        ([1.5], "int32", "1.5 does not fit"),
        ([1j], "float32", "does not fit"),
        ([2**70], None, "does not fit"),
    ],
)
def test_a_number_that_its_dtype_cannot_hold_raises(data, dtype, words):
    with pytest.raises(ValueError, match=words):
        mt.Tensor(data, dtype=dtype)


def test_dtypes_are_given_as_ours_names_numpy_or_python_types():
    for dtype in (mt.float64, "float64", np.float64, np.dtype("f8")):
        assert mt.Tensor([1], dtype=dtype).dtype is mt.float64
    assert mt.Tensor([1], dtype=float).dtype is mt.float64
    with pytest.raises(ValueError, match="unknown dtype 'float31'"):
        mt.Tensor([1], dtype="float31")
    with pytest.raises(TypeError, match="expected a dtype"):
        mt.Tensor([1], dtype=[1, 2])


def test_dtypes_are_hashable_equal_to_their_names_and_pickle():
    assert repr(mt.float32) == "minitensor.float32"
    assert str(mt.int8) == "int8"
    assert mt.float32 == "float32"
    assert mt.float32 == np.dtype("float32")
    assert mt.float32 != mt.float64
    assert {mt.float32: 1}["float32"] == 1
    assert pickle.loads(pickle.dumps(mt.bfloat16)) is mt.bfloat16


@pytest.mark.parametrize("name", NAMES)
def test_numpy_arrays_go_in_and_out_with_their_dtype(name):
    a = np.array([[0, 1], [1, 0]], dtype=name)
    t = mt.Tensor(a)
    assert t.dtype == name
    back = t.numpy()
    assert back.dtype == a.dtype
    assert np.array_equal(back, a)


def test_the_constructor_copies_and_from_numpy_does_not():
    a = np.zeros(3)
    copied, shared = mt.Tensor(a), mt.from_numpy(a)
    a[0] = 1
    assert copied[0].item() == 0
    assert shared[0].item() == 1
    assert mt.asarray(a).data_ptr() == shared.data_ptr()


@pytest.mark.parametrize("view", [np.s_[::-1], np.s_[:, ::2], np.s_[::2, ::-2], np.s_[1:1], np.s_[..., 0]])
def test_strided_arrays_are_shared_without_a_copy(view):
    a = np.arange(20.0).reshape(4, 5)[view]
    t = mt.from_numpy(a)
    assert np.array_equal(t.numpy(), a)
    assert np.array_equal((t + 1).numpy(), a + 1)
    assert t.size == 0 or np.shares_memory(t.numpy(), a)


def test_arrays_of_another_byte_order_are_converted():
    assert mt.Tensor(np.array([1.0, 2.0], dtype=">f8")).tolist() == [1.0, 2.0]


def test_misaligned_arrays_are_copied():
    a = np.frombuffer(bytearray(17), dtype=np.uint8)[1:].view(np.float64)
    assert mt.asarray(a).tolist() == [0.0, 0.0]


def test_arrays_of_unsupported_dtypes_raise():
    for a in (np.array(["a"]), np.array([object()]), np.array(["2020-01-01"], dtype="M8[D]")):
        with pytest.raises(TypeError, match="the NumPy dtype .* is not supported"):
            mt.Tensor(a)


def test_a_read_only_array_makes_a_read_only_tensor():
    a = np.zeros(3)
    a.flags.writeable = False
    t = mt.from_numpy(a)
    with pytest.raises(ValueError, match="read-only"):
        t += 1
    assert not t.numpy().flags.writeable


def test_bytes_other_than_0_and_1_become_bools():
    a = np.array([0, 1, 2, 255], dtype=np.uint8).view(np.bool_)
    assert mt.from_numpy(a).tolist() == [False, True, True, True]


def test_np_asarray_shares_memory():
    t = mt.Tensor([1.0, 2.0])
    a = np.asarray(t)
    a[0] = 5
    assert t.tolist() == [5.0, 2.0]
    assert np.asarray(t, dtype="float64").dtype == np.float64
    assert np.array(t) is not a


def test_views_keep_their_strides_in_numpy():
    t = mt.arange(6).reshape(2, 3)
    assert t.T.numpy().strides == (8, 24)
    assert np.array_equal(t[:, ::-1].numpy(), np.arange(6).reshape(2, 3)[:, ::-1])


def test_the_buffer_protocol_shows_the_elements():
    view = memoryview(mt.Tensor([[1, 2], [3, 4]], dtype="int32"))
    assert view.format == "i"
    assert view.shape == (2, 2)
    assert view.tolist() == [[1, 2], [3, 4]]
    assert mt.Tensor(b"ab").tolist() == [97, 98]


def test_memory_outlives_the_tensor_and_the_array():
    view = mt.Tensor([1.0, 2.0]).numpy()
    shared = mt.from_numpy(np.array([3.0]))
    assert view.tolist() == [1.0, 2.0]
    assert shared.tolist() == [3.0]


def test_bfloat16_converts_to_numpy_only_explicitly():
    t = mt.Tensor([1.0], dtype="bfloat16")
    with pytest.raises((TypeError, ImportError), match="bfloat16"):
        t.numpy()
    assert t.astype("float32").numpy().tolist() == [1.0]


@pytest.mark.parametrize("name", [*NAMES, "bfloat16"])
def test_pickles_keep_dtype_shape_values_and_requires_grad(name):
    t = mt.Tensor([[0, 1], [1, 0]], dtype=name)
    if name.startswith(("float", "bfloat")):
        t.requires_grad = True
    back = pickle.loads(pickle.dumps(t.T))
    assert (back.dtype, back.shape) == (t.dtype, t.shape)
    assert back.tolist() == t.T.tolist()
    assert pickle.loads(pickle.dumps(t)).requires_grad == t.requires_grad


def test_copies_share_and_deep_copies_do_not():
    t = mt.Tensor([1.0], requires_grad=True)
    assert copy.copy(t).data_ptr() == t.data_ptr()
    deep = copy.deepcopy(t)
    assert deep.data_ptr() != t.data_ptr()
    assert deep.requires_grad
    with pytest.raises(RuntimeError, match="detach"):
        copy.deepcopy(t * 2)


def test_properties_describe_a_tensor():
    t = mt.zeros((2, 3), dtype="float64")
    assert (t.shape, t.ndim, t.size, t.numel(), t.dtype, t.device) == ((2, 3), 2, 6, 6, mt.float64, "cpu")
    assert (t.itemsize, t.nbytes, t.strides, len(t)) == (8, 48, (3, 1), 2)
    assert t.T.shape == (3, 2)
    assert t.mT.shape == (3, 2)
    assert t.is_contiguous()
    assert not t.T.is_contiguous()
    assert t.T.contiguous().is_contiguous()


def test_one_element_is_a_python_number():
    assert mt.Tensor([[2.5]]).item() == 2.5
    assert (float(mt.Tensor(2)), int(mt.Tensor(2.9)), bool(mt.Tensor([0.0])), complex(mt.Tensor(1j))) == (
        2.0,
        2,
        False,
        1j,
    )
    assert [10, 20, 30][mt.Tensor(1)] == 20
    assert f"{mt.Tensor(1.0):.2f}" == "1.00"
    for f in (float, int, complex, bool):
        with pytest.raises(ValueError, match="one element"):
            f(mt.Tensor([1, 2]))
    with pytest.raises(TypeError, match="integer tensor"):
        range(mt.Tensor(1.0))
    with pytest.raises(TypeError, match="no len"):
        len(mt.Tensor(1))
    with pytest.raises(TypeError, match="iterated"):
        list(mt.Tensor(1))


def test_tensors_hash_by_identity_and_can_be_referred_to_weakly():
    t = mt.Tensor([1])
    assert {t: 1}[t] == 1
    ref = weakref.ref(t)
    del t
    assert ref() is None


def test_tensor_can_be_subclassed():
    class Named(mt.Tensor):
        pass

    t = Named([1.0, 2.0])
    t.name = "x"
    assert isinstance(t + 1, mt.Tensor)
    assert mt.ops.sum(t).item() == 3.0


def test_repr_shows_values_dtype_and_gradient():
    assert repr(mt.Tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])"
    assert "dtype=float64" in repr(mt.zeros(2, dtype="float64"))
    assert "requires_grad=True" in repr(mt.Tensor([1.0], requires_grad=True))
    assert "grad_fn=<add>" in repr(mt.Tensor([1.0], requires_grad=True) + 1)
    assert "..." in repr(mt.zeros(10000))
    assert "&lt;add&gt;" in (mt.Tensor([1.0], requires_grad=True) + 1)._repr_html_()


def test_an_absent_device_raises():
    with pytest.raises(RuntimeError, match="'cuda' is not available"):
        mt.Tensor([1], device="cuda")
    with pytest.raises(ValueError, match="unknown device"):
        mt.zeros(1, device="tpu")
    assert not mt.cuda.is_available()


def test_an_uninitialized_tensor_raises_and_can_be_initialized_once():
    shell = mt.Tensor.__new__(mt.Tensor)
    with pytest.raises(RuntimeError, match="_tensor"):
        shell.shape  # noqa: B018
    shell._tensor = mt.Tensor([1.0])._tensor
    assert shell.tolist() == [1.0]
    with pytest.raises(RuntimeError, match="already"):
        shell._tensor = mt.Tensor([2.0])


def test_to_changes_dtype_or_device():
    t = mt.Tensor([1.5])
    assert t.to("float64").dtype == mt.float64
    assert t.to(mt.int32).tolist() == [1]
    assert t.to("cpu") is t
    assert t.to("meta").device == "meta"
    with pytest.raises(RuntimeError, match="meta"):
        t.to("meta").tolist()


def test_subclasses_pickle_as_base_or_themselves():
    assert isinstance(pickle.loads(pickle.dumps(mt.Tensor([1.0]))), mt.Tensor)
