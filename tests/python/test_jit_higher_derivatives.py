"""Derivatives of all orders of jitted functions, and tensors that they capture."""

import numpy as np
import pytest

import minitensor as mt


def check_against_eager(function, *inputs, order=2):
    """Compares results and derivatives of a function with those under `mt.jit`, in three calls with other numbers."""
    jitted = mt.jit(function)
    for k in range(3):
        found = []
        for f in (function, jitted):
            leaves = [mt.Tensor(np.asarray(x) + 0.25 * k, dtype="float64", requires_grad=True) for x in inputs]
            y, values = f(*leaves), []
            values.append(np.asarray(y.detach()))
            for _ in range(order):
                y = (y * y).sum()
                grads = mt.grad(y, leaves, create_graph=True, allow_unused=True)
                values += [np.asarray(g.detach()) for g in grads if g is not None]
                y = sum(((g * (i + 2.0)).sum() for i, g in enumerate(grads) if g is not None), mt.zeros(()))
                if not y.requires_grad:
                    break
            found.append(values)
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def changes_a_constant(x):
    t = mt.zeros(3, dtype="float64")
    t += x * x
    return t * mt.full((3,), 2.0, dtype="float64") + x


def test_a_constant_that_is_changed_is_not_folded():
    f = mt.jit(changes_a_constant)
    for k in range(3):
        x = mt.Tensor([1.0, 2.0, 3.0 + k], dtype="float64")
        np.testing.assert_array_equal(np.asarray(f(x)), np.asarray(changes_a_constant(x)))


def test_the_gradient_reads_a_constant_as_it_was_changed():
    def function(x):
        t = mt.zeros(3)
        t += x * x
        return t * x

    f = mt.jit(function)
    for k in range(3):
        x = mt.Tensor([1.0, 2.0, 3.0 + k], requires_grad=True)
        assert mt.grad(f(x).sum(), x)[0].tolist() == (3 * x * x).tolist()


def test_a_captured_tensor_whose_history_leads_to_an_argument():
    x = mt.Tensor([1.0, 2.0], requires_grad=True)
    h = x * 3
    for _ in range(2):
        (grad,) = mt.grad(mt.jit(lambda x: x * h)(x).sum(), x, retain_graph=True)
        assert grad.tolist() == [6.0, 12.0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.detach() * x,
        lambda x: x.detach().clone() * x * x,
        lambda x: (x * x).detach() * x * x,
        lambda x: x.detach().exp() * x.sin() + (x.exp().detach() * x),
        lambda x: mt.ops.where(x.detach() > 0, x * x.detach(), x),
    ],
)
def test_detached_tensors_in_derivatives(function):
    check_against_eager(function, [1.0, -2.0, 3.0], order=3)


def test_calls_without_gradients_in_derivatives():
    def function(x):
        with mt.no_grad():
            scale = (x * x).sum()
        return x * x * scale

    check_against_eager(function, [1.0, -2.0, 3.0], order=3)


def test_a_gradient_in_a_function_that_is_differentiated():
    def function(x):
        inner = x * x * x
        (slope,) = mt.grad(inner.sum(), x)
        return slope * x

    def second(x):
        (slope,) = mt.grad((x * x * x).sum(), x, create_graph=True)
        return slope * x

    for f in (function, second):
        check_against_eager(f, [1.0, -2.0, 3.0], order=2)


def test_a_detached_argument_is_a_result():
    f = mt.jit(lambda x: (x.detach(), x * 2))
    x = mt.ones(2, requires_grad=True)
    for _ in range(3):
        y, z = f(x)
        assert not y.requires_grad and z.requires_grad
