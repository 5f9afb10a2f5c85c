"""Behaviour at the interfaces of tensors that users of NumPy and PyTorch expect."""

import ctypes
import operator

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


EXPORTS = {
    "numpy": lambda t: t.numpy(),
    "asarray": np.asarray,
    "array": np.array,
    "asarray of float32": lambda t: np.asarray(t, dtype="float32"),
    "sqrt": np.sqrt,
    "a list": lambda t: np.array([t, t]),
    "concatenate": lambda t: np.concatenate([np.ones(2), t]),
}


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_a_gradient_is_not_lost_silently(export):
    t = mt.Tensor([1.0, 2.0], requires_grad=True)
    for tensor in (t, t * 2.0):
        with pytest.raises(RuntimeError, match=r"requires a gradient, which would be lost; use t.detach\(\).numpy\(\)"):
            export(tensor)
    export(t.detach())


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


def test_arrays_of_ctypes_are_tensors():
    flat, nested = (ctypes.c_float * 3)(1, 2, 3), ((ctypes.c_int64 * 2) * 2)((1, 2), (3, 4))
    assert mt.Tensor(flat).tolist() == [1.0, 2.0, 3.0]
    shared = mt.asarray(nested)
    assert (shared.dtype, shared.tolist()) == (mt.int64, [[1, 2], [3, 4]])
    shared[0, 0] = 7
    assert nested[0][0] == 7
    assert mt.Tensor((ctypes.c_bool * 2)(True, False)).tolist() == [True, False]
    assert mt.Tensor((ctypes.c_double * 0)()).shape == (0,)
    number = mt.Tensor(ctypes.c_float(1.5))
    assert (number.item(), number.shape, number.dtype) == (1.5, (), mt.float32)
    assert mt.asarray(memoryview(np.array(3, "int16"))).item() == 3
    with pytest.raises(TypeError, match="the buffer format .* is not supported"):
        mt.Tensor((ctypes.c_char * 2)())
