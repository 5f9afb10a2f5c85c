"""Compares operators with NumPy."""

import operator

import numpy as np
import pytest

import minitensor as mt

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]
COMPARISON = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("f", ARITHMETIC + COMPARISON)
def test_operators_on_floats_equal_numpy(f, rng):
    a, b = rng.uniform(0.5, 3, (2, 3)), rng.uniform(0.5, 3, (3,))
    x, y = mt.Tensor(a), mt.Tensor(b)
    assert np.allclose(f(x, y).numpy(), f(a, b))
    assert np.allclose(f(x, 2.0).numpy(), f(a, 2.0))
    assert np.allclose(f(2.0, x).numpy(), f(2.0, a))
    assert np.allclose(f(x, b).numpy(), f(a, b))
    assert f(x, 2.0).dtype in (mt.float64, mt.bool)


@pytest.mark.parametrize("f", BITS)
def test_operators_on_integers_equal_numpy(f):
    a, b = np.array([1, 2, 12]), np.array([3, 1, 2])
    assert f(mt.Tensor(a), mt.Tensor(b)).tolist() == f(a, b).tolist()
    assert f(mt.Tensor(a), 2).tolist() == f(a, 2).tolist()
    assert f(2, mt.Tensor(a)).tolist() == f(2, a).tolist()


def test_unary_operators():
    x = mt.Tensor([1, -2])
    assert ((-x).tolist(), (+x).tolist(), abs(x).tolist(), (~x).tolist()) == ([-1, 2], [1, -2], [1, 2], [-2, 1])
    assert (~mt.Tensor([True, False])).tolist() == [False, True]
    assert [t.tolist() for t in divmod(mt.Tensor([7, -7]), 2)] == [[3, -4], [1, 1]]


def test_matrices_multiply(rng):
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 4))
    assert np.allclose((mt.Tensor(a) @ mt.Tensor(b)).numpy(), a @ b)
    assert np.allclose((a @ mt.Tensor(b)).numpy(), a @ b)


def test_python_numbers_do_not_widen():
    assert (mt.zeros(1, dtype="float16") + 1.0).dtype == mt.float16
    assert (mt.zeros(1, dtype="int8") + 1).dtype == mt.int8
    assert (mt.zeros(1, dtype="int8") + 1.0).dtype == mt.float32
    assert (mt.zeros(1) + 1j).dtype == mt.complex64
    assert (mt.zeros(1, dtype="float64") * 1j).dtype == mt.complex128


def test_a_numpy_array_on_the_left_leaves_it_to_the_tensor():
    out = np.ones(2) + mt.Tensor([1.0, 2.0], requires_grad=True)
    assert isinstance(out, mt.Tensor)
    assert out.requires_grad


def test_unsupported_operands_raise_a_type_error():
    for other in ("a", [1], None, object()):
        with pytest.raises(TypeError):
            mt.zeros(2) + other
        with pytest.raises(TypeError):
            other + mt.zeros(2)
    with pytest.raises(TypeError, match="modulus"):
        pow(mt.zeros(1), 2, 3)


def test_in_place_operators_change_the_memory():
    x = mt.Tensor([1.0, 2.0])
    view, before = x.numpy(), x
    x += 1
    x *= mt.Tensor([2.0, 3.0])
    x -= 1
    x /= 3
    assert x is before
    assert view.tolist() == [1.0, pytest.approx(8 / 3)]


def test_in_place_operators_reject_mismatched_operands():
    x = mt.Tensor([1, 2])
    with pytest.raises(TypeError, match="cannot hold the result"):
        x += 1.5
    with pytest.raises(ValueError, match="shape"):
        x += mt.ones((2, 2), dtype="int64")
    leaf = mt.Tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="no_grad"):
        leaf += 1
    with mt.no_grad():
        leaf += 1
    assert leaf.tolist() == [2.0]


def test_shapes_that_do_not_broadcast_raise_with_both():
    with pytest.raises(ValueError, match=r"'add'.*\(3,\).*\(2,\)"):
        mt.zeros(2) + mt.zeros(3)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("exponent", [2, 2.0])
def test_a_square_has_the_dtype_of_a_power(dtype, exponent):
    x = mt.Tensor([3, 5, 7], dtype=dtype)
    square, power = x**exponent, mt.ops.power(x, exponent)
    assert square.dtype == power.dtype and square.tolist() == power.tolist() == [9, 25, 49]


def test_a_power_of_booleans_is_not_a_square():
    assert (mt.Tensor([True, False]) ** 2).tolist() == mt.ops.power(mt.Tensor([True, False]), 2).tolist()
