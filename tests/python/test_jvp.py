"""`mt.jvp`, compared with finite differences in float64."""

from __future__ import annotations

import numpy as np
import pytest

import minitensor as mt

RANDOM = np.random.default_rng(11)


def difference(function, primals, tangents, step=1e-6):
    """The central difference of a function of arrays in a direction."""
    ahead = function(*[mt.Tensor(x + step * t) for x, t in zip(primals, tangents, strict=True)])
    back = function(*[mt.Tensor(x - step * t) for x, t in zip(primals, tangents, strict=True)])
    return (np.asarray(ahead) - np.asarray(back)) / (2 * step)


FUNCTIONS = {
    "elements": (lambda x: mt.exp(x) * mt.tanh(x), [(3, 4)]),
    "rows": (lambda x: mt.ops.softmax(x, axis=0), [(3, 4)]),
    "a product": (lambda x, y: x @ y, [(3, 4), (4, 2)]),
    "a convolution": (lambda x, w: mt.ops.conv2d(x, w, padding=1), [(1, 2, 5, 5), (3, 2, 3, 3)]),
    "views": (lambda x: x.T[1:] * x.sum(), [(3, 4)]),
    "indices": (lambda x: x[mt.Tensor([2, 0, 2])].cumsum(0), [(3, 4)]),
    "a maximum": (lambda x: x.max(axis=1), [(3, 4)]),
    "changes in place": (lambda x: (x * 2).add_(mt.sin(x)) if hasattr(x, "add_") else x * 2 + mt.sin(x), [(5,)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_derivative_is_that_of_finite_differences(name):
    function, shapes = FUNCTIONS[name]
    primals, tangents = ([RANDOM.standard_normal(shape) for shape in shapes] for _ in range(2))
    y, dy = mt.jvp(function, [mt.Tensor(x) for x in primals], [mt.Tensor(t) for t in tangents])
    np.testing.assert_array_equal(y, function(*map(mt.Tensor, primals)))
    np.testing.assert_allclose(dy, difference(function, primals, tangents), rtol=1e-7, atol=1e-8)
    assert not y.requires_grad and not dy.requires_grad


def test_the_derivative_of_each_result_has_its_place():
    x, t = mt.Tensor([1.0, 2.0]), mt.Tensor([3.0, 4.0])
    y, dy = mt.jvp(lambda x: {"square": x * x, "list": [x.sum(), 7], "none": mt.zeros(2)}, (x,), (t,))
    assert dy["square"].tolist() == [6.0, 16.0] and dy["list"][0].item() == 7.0 and y["list"][1] == 7
    assert dy["none"].tolist() == [0.0, 0.0]


def test_one_tensor_may_be_two_arguments():
    x = mt.Tensor([2.0, 3.0])
    _, dy = mt.jvp(lambda a, b: a * b, (x, x), (mt.Tensor([1.0, 0.0]), mt.Tensor([0.0, 1.0])))
    assert dy.tolist() == [2.0, 3.0]


def test_derivatives_are_functions_that_have_derivatives():
    x = mt.Tensor(RANDOM.standard_normal(4), requires_grad=True)
    t = mt.Tensor(RANDOM.standard_normal(4))
    _, dy = mt.jvp(lambda x: (mt.sin(x) * x).sum(), (x,), (t,))
    (second,) = mt.grad(dy, x)
    a, d = np.asarray(x.detach()), np.asarray(t)
    np.testing.assert_allclose(second, (2 * np.cos(a) - a * np.sin(a)) * d, rtol=1e-13)
    _, third = mt.jvp(lambda x: mt.jvp(lambda x: x**3, (x,), (t,))[1], (x.detach(),), (t,))
    np.testing.assert_allclose(third, 6 * a * d * d, rtol=1e-13)


def test_custom_ops_have_the_derivative_of_their_gradient():
    @mt.custom_op(name="jvp::cube")
    def cube(x):
        return x * x * x

    try:
        _, dy = mt.jvp(cube, (mt.Tensor([2.0]),), (mt.Tensor([0.5]),))
        assert dy.tolist() == [6.0]
    finally:
        mt.unregister_custom_op_py("jvp::cube")


def test_complex_numbers():
    z, t = (RANDOM.standard_normal(3) + 1j * RANDOM.standard_normal(3) for _ in range(2))
    for function in (lambda z: mt.exp(z) * z.conj(), lambda z: mt.ops.hypot(mt.real(z), mt.imag(z))):
        _, dy = mt.jvp(function, (mt.Tensor(z),), (mt.Tensor(t),))
        np.testing.assert_allclose(dy, difference(function, [z], [t]), rtol=1e-7)


def test_under_no_grad_and_jit():
    x, t = mt.Tensor([1.0, 2.0]), mt.Tensor([1.0, 1.0])
    with mt.no_grad():
        assert mt.jvp(lambda x: x * x, (x,), (t,))[1].tolist() == [2.0, 4.0]
    jitted = mt.jit(lambda x, t: mt.jvp(lambda x: mt.exp(x) * x, (x,), (t,))[1])
    np.testing.assert_allclose(jitted(x, t), np.exp([1.0, 2.0]) * [2.0, 3.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("primals", "tangents", "kind", "message"),
    [
        (mt.ones(2), mt.ones(2), TypeError, r"primals must be a tuple of tensors, got Tensor; write \(x,\) for one"),
        ((mt.ones(2),), (), ValueError, "got 1 primals, but 0 tangents"),
        ((mt.ones(2),), ([1.0, 2.0],), TypeError, "tangent 0 must be a Tensor, got list"),
        ((mt.Tensor([1, 2]),), (mt.Tensor([1, 2]),), TypeError, "primal 0 is int64, expected a floating or complex"),
        ((mt.ones(2),), (mt.ones(3),), ValueError, r"is float32 \(3,\) on cpu, expected float32 \(2,\) on cpu"),
    ],
)
def test_wrong_arguments(primals, tangents, kind, message):
    with pytest.raises(kind, match=message):
        mt.jvp(lambda *x: x[0], primals, tangents)


def test_derivatives_by_tensors_that_the_function_refers_to():
    one, two = mt.Tensor([1.0]), mt.Tensor([2.0])
    # d/dx d/dy (x · y) is 1.
    assert mt.jvp(lambda x: mt.jvp(lambda y: x * y, (two,), (one,))[1], (two,), (one,))[1].tolist() == [1.0]
    layer = mt.nn.Linear(1, 1)
    _, dy = mt.jvp(lambda x: layer(x) ** 2, (two,), (one,))
    dy.sum().backward()
    w, b = (p.detach().item() for p in (layer.weight, layer.bias))
    np.testing.assert_allclose(layer.weight.grad, [[2 * (2 * 2 * w + b)]], rtol=1e-6)


def test_a_gradient_without_recorded_ops_is_an_error():
    @mt.custom_op(name="jvp::detached", backward=lambda ctx, grad: grad.detach() * 2)
    def detached(x):
        return x * 2

    try:
        with pytest.raises(RuntimeError, match="primal 0 does not depend on the cotangent"):
            mt.jvp(detached, (mt.Tensor([1.0]),), (mt.Tensor([1.0]),))
    finally:
        mt.unregister_custom_op_py("jvp::detached")
