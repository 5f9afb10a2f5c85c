"""Behaviour at the interfaces of tensors that users of NumPy and PyTorch expect."""

import copy
import ctypes
import operator
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import minitensor as mt

IN_PLACE = [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow, operator.imatmul]


@pytest.mark.parametrize("change", IN_PLACE, ids=[f.__name__ for f in IN_PLACE])
def test_an_array_that_a_tensor_changes_in_place_stays_the_array(change):
    b = np.array([[1.0, 2.0], [3.0, 4.0]], dtype="float32")
    t = mt.Tensor([[2.0, 1.0], [0.5, 4.0]])
    expected, before = change(b.copy(), t.numpy()), b
    b = change(b, t)
    assert b is before
    np.testing.assert_array_equal(b, expected)


def test_an_array_is_not_changed_in_place_by_a_tensor_that_requires_a_gradient():
    b, before = np.ones(2), np.ones(2)
    with pytest.raises(RuntimeError, match=r"requires a gradient.*use t.detach\(\).numpy\(\)"):
        b += mt.Tensor([1.0, 2.0], requires_grad=True)
    np.testing.assert_array_equal(b, before)
    with pytest.raises(TypeError, match="Cannot cast"):
        np.add(mt.ones(2), 1.5, out=np.ones(2, dtype=int))


OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod, operator.matmul]
OPERATORS += [operator.floordiv, operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]


@pytest.mark.parametrize("apply", OPERATORS, ids=[f.__name__ for f in OPERATORS])
def test_operators_with_an_array_on_the_left_are_those_of_tensors(apply):
    a, t = np.array([1.0, 5.0, 2.0]), mt.Tensor([2.0, 5.0, 1.0], dtype="float64", requires_grad=True)
    out = apply(a, t)
    assert isinstance(out, mt.Tensor)
    np.testing.assert_array_equal(out.detach(), apply(a, t.detach().numpy()))
    if out.requires_grad:
        out.sum().backward()
        assert t.grad is not None


UFUNCS = [np.add, np.subtract, np.multiply, np.divide, np.power, np.remainder, np.matmul, np.less, np.equal]


@pytest.mark.parametrize("ufunc", UFUNCS, ids=[f.__name__ for f in UFUNCS])
def test_the_ufunc_of_an_operator_returns_a_tensor_in_any_order(ufunc):
    a, t = np.array([1.0, 5.0, 2.0]), mt.Tensor([2.0, 5.0, 1.0], dtype="float64")
    for left, right in ((a, t), (t, a), (t, t)):
        out = ufunc(left, right)
        assert isinstance(out, mt.Tensor)
        np.testing.assert_array_equal(out, ufunc(np.asarray(left), np.asarray(right)))
    assert isinstance(np.add(t, [1.0, 2.0, 3.0]), np.ndarray)


def test_a_scalar_of_numpy_on_the_left_is_a_number():
    t = mt.Tensor([1.0, 2.0], requires_grad=True)
    assert (np.float64(3.0) * t).requires_grad
    assert (np.int64(3) - t).tolist() == [2.0, 1.0]


def test_other_ufuncs_take_and_return_arrays():
    t = mt.Tensor([1.0, 4.0])
    for made in (
        np.sqrt(t),
        np.add(t, t, dtype="float64"),
        np.hypot(np.ones(2), t),
        np.add.reduce(t),
        np.add.outer(t, [1.0]),
    ):
        assert isinstance(made, np.ndarray | np.generic)
    assert np.sqrt(t).tolist() == [1.0, 2.0]
    out = np.zeros(2)
    assert np.add(t, t, out=out, where=mt.Tensor([True, False])).tolist() == [2.0, 0.0]
    assert np.sqrt(t, out=out) is out and out.tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match=r"np.sqrt: out must be an array, got a Tensor; pass out.numpy\(\)"):
        np.sqrt(np.ones(2), out=t)
    np.sqrt(np.ones(2), out=t.numpy())
    assert t.tolist() == [1.0, 1.0]


FUNCTIONS = {
    "sum": lambda x: np.sum(x),
    "sum of an axis": lambda x: np.sum(x, axis=0, keepdims=True, dtype="float64"),
    "sum into an array": lambda x: np.sum(x, axis=1, out=np.zeros(2)),
    "mean": lambda x: np.mean(x, dtype="float64"),
    "var": lambda x: np.var(x, ddof=1),
    "max": lambda x: np.max(x, axis=1),
    "any": lambda x: np.any(x),
    "argmax": lambda x: np.argmax(x, axis=0),
    "squeeze": lambda x: np.squeeze(x[:1]),
    "nonzero": lambda x: np.nonzero(x),
    "concatenate": lambda x: np.concatenate([x, x], axis=1),
    "block": lambda x: np.block([[x, x], [x, x]]),
    "where": lambda x: np.where(x > 1, x, 0),
    "norm": lambda x: np.linalg.norm(x),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_numpy_functions_take_tensors_as_arrays(function):
    a = np.array([[1.0, 5.0, 2.0], [0.0, 3.0, 4.0]])
    out, expected = function(mt.Tensor(a)), function(a)
    assert type(out) is type(expected)
    np.testing.assert_array_equal(out, expected)


def test_numpy_functions_keep_no_gradient_and_write_into_arrays_only():
    x = mt.ones((2, 3), requires_grad=True)
    with pytest.raises(RuntimeError, match="requires a gradient, which would be lost"):
        np.sum(x)
    assert (np.shape(x), np.ndim(x), np.size(x)) == ((2, 3), 2, 6)
    assert np.shape(mt.ones(4, device="meta")) == (4,)
    with pytest.raises(TypeError, match=r"np.sum: out must be an array, got a Tensor; pass out.numpy\(\)"):
        np.sum(x.detach(), out=mt.zeros(()))
    endless = [x.detach()]
    endless.append(endless)
    with pytest.raises(ValueError, match="inhomogeneous"):
        np.concatenate(endless)


LEAVING = {
    "numpy": lambda t: t.numpy(),
    "asarray": np.asarray,
    "array": np.array,
    "asarray of float32": lambda t: np.asarray(t, dtype="float32"),
    "sqrt": np.sqrt,
    "a list": lambda t: np.array([t, t]),
    "concatenate": lambda t: np.concatenate([np.ones(2), t]),
}


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)
def test_a_gradient_is_not_lost_silently(leave):
    t = mt.Tensor([1.0, 2.0], requires_grad=True)
    for tensor in (t, t * 2.0):
        with pytest.raises(RuntimeError, match=r"requires a gradient, which would be lost; use t.detach\(\).numpy\(\)"):
            leave(tensor)
    leave(t.detach())


def test_a_buffer_of_a_tensor_that_requires_a_gradient_raises():
    t = mt.Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(BufferError, match="requires a gradient"):
        memoryview(t)
    with pytest.raises(BufferError, match="DLPack does not support gradients"):
        np.from_dlpack(t)
    assert t.tolist() == [1.0, 2.0] and t[0].item() == 1.0


PYTHON_TYPES = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}


@pytest.mark.parametrize(("given", "name"), PYTHON_TYPES.items(), ids=PYTHON_TYPES.values())
def test_python_types_have_the_same_meaning_as_in_numpy(given, name):
    x = mt.Tensor([0, 1])
    made = [
        x.astype(given),
        x.to(given),
        mt.zeros(2, dtype=given),
        mt.Tensor([0, 1], dtype=given),
        mt.asarray([0, 1], dtype=given),
        mt.full(2, 1, dtype=given),
        mt.ops.astype(x, given),
        mt.ones_like(x, dtype=given),
    ]
    assert {t.dtype for t in made} == {getattr(mt, name)}
    assert np.dtype(given) == name and mt.DType(given) == given


# Pickles.

RESULTS = [lambda: mt.ops.sort(mt.Tensor([3.0, 1.0])), lambda: mt.ops.topk(mt.Tensor([3.0, 1.0]), 1)]


@pytest.mark.parametrize("make", RESULTS, ids=["sort", "topk"])
def test_results_of_several_tensors_are_pickled(make):
    result = make()
    for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert type(again) is type(result)
        assert again._fields == result._fields
        assert [t.tolist() for t in again] == [t.tolist() for t in result]


def test_results_are_pickled_by_the_name_of_their_op(registered):
    @mt.custom_op(name="pickled::halves", outputs=["low", "high"])
    def halves(x):
        return x[:1], x[1:]

    data = pickle.dumps(mt.ops.pickled.halves(mt.Tensor([1.0, 2.0])))
    assert pickle.loads(data).high.tolist() == [2.0]
    mt.unregister_custom_op_py("pickled::halves")
    with pytest.raises(ValueError, match="pickled::halves"):
        pickle.loads(data)


VERSION = mt.plugins.VersionInfo(1, 2, 3)
PICKLED = [mt.float32, mt.ops.exp, VERSION, mt.plugins.PluginInfo("p", VERSION)]


@pytest.mark.parametrize("given", PICKLED, ids=map(str, PICKLED))
def test_values_of_the_package_are_pickled(given):
    assert pickle.loads(pickle.dumps(given)) == given


# Buffers.


def test_arrays_of_ctypes_are_tensors():
    flat, nested = (ctypes.c_float * 3)(1, 2, 3), ((ctypes.c_int64 * 2) * 2)((1, 2), (3, 4))
    assert mt.Tensor(flat).tolist() == [1.0, 2.0, 3.0]
    shared = mt.asarray(nested)
    assert (shared.dtype, shared.tolist()) == (mt.int64, [[1, 2], [3, 4]])
    shared[0, 0] = 7
    assert nested[0][0] == 7
    assert mt.Tensor((ctypes.c_bool * 2)(True, False)).tolist() == [True, False]
    assert mt.Tensor((ctypes.c_double * 0)()).shape == (0,)
    with pytest.raises(TypeError, match="the buffer format .* is not supported"):
        mt.Tensor((ctypes.c_char * 2)())


# Commands.


@pytest.mark.parametrize("command", [["ops"], ["--help"], ["plugins"], []], ids=str)
def test_a_command_whose_reader_closes_early_prints_no_error(command):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "minitensor", *command], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")


# Numbers that are too large, and hints in messages.

BEYOND = {
    "eye: k is 9223372036854775808, which doesn't fit into int64": lambda: mt.eye(2, k=2**63),
    "eye: n_rows is 18446744073709551616, which doesn't": lambda: mt.eye(2**64),
    "linspace: num is 9223372036854775808, which": lambda: mt.linspace(0, 1, 2**63),
    "randint: high is 9223372036854775808, which": lambda: mt.randint(0, 2**63, (2,)),
    "randint: low is -9223372036854775809, which": lambda: mt.randint(-(2**63) - 1, 0, (2,)),
    "set_num_threads: n is 9223372036854775808, which": lambda: mt.set_num_threads(2**63),
    "18446744073709551615 doesn't fit into int64": lambda: mt.ops.roll(mt.ones(2), np.uint64(2**64 - 1)),
}


@pytest.mark.parametrize(("words", "call"), BEYOND.items(), ids=BEYOND)
def test_a_number_beyond_int64_is_named(words, call):
    with pytest.raises(ValueError, match=words):
        call()


def test_advice_about_dtypes_works():
    c = mt.Tensor([1j])
    with pytest.raises(TypeError, match=r"got complex64; take its parts first, with real\(x\) and imag\(x\)"):
        mt.ops.floor(c)
    assert mt.ops.floor(mt.ops.real(c)).tolist() == [0.0] and mt.ops.floor(mt.ops.imag(c)).tolist() == [1.0]
    with pytest.raises(TypeError, match=r"got float32; round it, and convert it with astype\('int64'\)"):
        mt.ops.embedding(mt.ones(2, 2), mt.ones(1))
    with pytest.raises(TypeError, match=r"got float32; compare it first, as in x != 0"):
        mt.ops.where(mt.ones(1), 1.0, 2.0)
    x = mt.ones(1, dtype="int32")
    with pytest.raises(TypeError, match=r"convert it with astype\('float32'\) first, or use the op that returns a new"):
        x += 1.5
    with pytest.raises(ValueError, match=r"\(0\+1j\) doesn't fit into float32; use a complex dtype"):
        mt.full(1, 1j, dtype="float32")


def test_a_tuple_instead_of_a_tensor_raises_and_shows_the_signature():
    with pytest.raises(TypeError, match=r"'weight' must be a tensor, got tuple; .* the signature is layer_norm\(x, w"):
        mt.ops.layer_norm(mt.ones(2, 4), (4,))


#: Calls that fail in an op called by the op. The message names the outer op.
PARTS = {
    "op 'index': index 5 is out of range for axis 0": lambda x: x[mt.Tensor([5])],
    "op 'matmul' takes": lambda x: x @ x,
    "op 'sum': axis .* names an axis twice": lambda x: mt.ops.sum(x, axis=(0, 0)),
    "op 'cross_entropy': 'target' holds the position 7": lambda x: mt.ops.cross_entropy(x, mt.Tensor([7, 7])),
}


@pytest.mark.parametrize(("words", "call"), PARTS.items(), ids=PARTS)
def test_an_error_names_the_outer_op(words, call):
    with pytest.raises((ValueError, IndexError), match=words) as raised:
        call(mt.ones(2, 3))
    assert "::" not in str(raised.value)
