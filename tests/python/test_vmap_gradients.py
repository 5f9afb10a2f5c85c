"""Gradients and `mt.vmap`."""

import numpy as np
import pytest
from vmap_checks import FUNCTIONS, SIZE, assert_close, assert_same, looped, randn

import minitensor as mt


def test_for_each_example():
    w = randn(4, requires_grad=True)
    f = lambda x: mt.grad(((x * w).sum() ** 2).exp(), w)[0]  # noqa: E731
    x = randn(SIZE, 4) / 4
    assert_close(mt.vmap(f)(x), looped(f, x))
    assert w.grad is None


def test_of_a_model_for_each_example():
    model = mt.nn.Sequential(mt.nn.Linear(4, 8), mt.nn.Function(mt.ops.tanh), mt.nn.Linear(8, 2))
    parameters = list(model.parameters())
    x, y = randn(SIZE, 4).astype("float32"), randn(SIZE, 2).astype("float32")

    def f(x, y):
        return tuple(mt.grad(((model(x) - y) ** 2).mean(), parameters))

    for got in (mt.vmap(f)(x, y), mt.jit(mt.vmap(f))(x, y)):
        for a, b in zip(got, looped(f, x, y), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)
    assert all(p.grad is None for p in parameters)


def test_of_a_leaf_that_the_function_makes():
    def f(x):
        x = x.detach().requires_grad_()
        (x**3).sum().backward()
        return x.grad

    assert_close(mt.vmap(f)(randn(SIZE, 4)), looped(f, randn(SIZE, 4)))
    leaf = randn(SIZE, 4, requires_grad=True)
    assert not mt.vmap(f)(leaf).requires_grad


def test_of_gradients():
    def f(x):
        x = x.detach().requires_grad_()
        (g,) = mt.grad((x**4).sum(), x, create_graph=True)
        (h,) = mt.grad((g * g).sum(), x)
        return h

    assert_close(mt.vmap(f)(randn(SIZE, 4)), looped(f, randn(SIZE, 4)))


def test_through_gradients():
    def f(x):
        return mt.grad((x**3).sum(), x, create_graph=True)[0]

    x = randn(SIZE, 4, requires_grad=True)
    assert_close(mt.grad(mt.vmap(f)(x).sum(), x)[0], 6 * x)


def test_of_captured_tensors():
    w, b = randn(4, 2, requires_grad=True), randn(2, requires_grad=True)
    f = lambda x: (x @ w + b).tanh()  # noqa: E731
    x = randn(SIZE, 4)
    got, expected = (mt.grad(y.sum(), [w, b]) for y in (mt.vmap(f)(x), looped(f, x)))
    assert_close(got, expected)
    mt.vmap(f)(x).sum().backward()
    assert_close(w.grad, expected[0])


def test_of_tensors_with_a_history():
    w = randn(4, requires_grad=True)
    v = w.exp()
    x = randn(SIZE, 4, requires_grad=True)
    f = lambda x: (x * v).sum()  # noqa: E731
    y = mt.vmap(f)(x * 2)
    expected = mt.grad(looped(f, x * 2).sum(), [w, x], retain_graph=True)
    assert_close(mt.grad(y.sum(), [w, x]), expected)


@pytest.mark.parametrize("name", ["elements", "softmax", "matmul", "detached", "in place", "reshape", "concat"])
def test_of_higher_order(name):
    f = FUNCTIONS[name]

    def second(run):
        x = randn(SIZE, 4, 4, requires_grad=True)
        y = run(f, x)
        y = sum(t.sum() for t in y) if isinstance(y, tuple) else y.sin().sum()
        (g,) = mt.grad(y, x, create_graph=True)
        return g, mt.grad((g * g).sum(), x)[0] if g.requires_grad else g

    assert_close(second(lambda f, x: mt.vmap(f)(x)), second(looped))


def test_a_detached_tensor_has_none():
    x = mt.Tensor([[1.0], [2.0]], requires_grad=True)
    (g,) = mt.grad(mt.vmap(lambda x: (x * x.detach()).sum())(x).sum(), x, create_graph=True)
    assert g.tolist() == [[1.0], [2.0]]
    assert not g.requires_grad


def test_no_grad_inside():
    def f(x):
        with mt.no_grad():
            scale = x.sum()
        return x * scale

    assert_same(f, randn(SIZE, 4))


def test_no_grad_outside():
    x = randn(SIZE, 4, requires_grad=True)
    with mt.no_grad():
        assert not mt.vmap(lambda x: x * 2)(x).requires_grad


def test_a_captured_tensor_and_its_detached_twin():
    w = randn(4, requires_grad=True)
    f = lambda x: (w.detach() * x).sum() + (w * w.detach() * x).sum()  # noqa: E731
    got, expected = (mt.grad(y.sum(), w) for y in (mt.vmap(f)(randn(SIZE, 4)), looped(f, randn(SIZE, 4))))
    assert_close(got, expected)


def test_of_an_op_with_a_gradient_of_its_own():
    @mt.custom_op(backward=lambda context, d: -2 * d)
    def vmap_test_reverse(x):
        return x

    try:
        assert_same(lambda x: mt.ops.vmap_test_reverse(x * 2) * x + x, randn(SIZE, 4))
    finally:
        mt.unregister_custom_op_py("vmap_test_reverse")


def test_jacobian():
    x = randn(4, requires_grad=True)
    w = randn(3, 4)
    y = (w @ x).tanh()
    rows = mt.vmap(lambda v: mt.grad(y, x, v, retain_graph=True)[0])(mt.eye(3, dtype="float64"))
    expected = mt.ops.stack([mt.grad(y, x, v, retain_graph=True)[0] for v in mt.eye(3, dtype="float64")])
    assert_close(rows, expected)


def test_hessian():
    def gradient(x):
        return mt.grad((x**3).sum() * x[0], x, create_graph=True)[0]

    x = randn(3, requires_grad=True)
    g = gradient(x)
    rows = mt.vmap(lambda v: mt.grad(g, x, v, retain_graph=True)[0])(mt.eye(3, dtype="float64"))
    expected = mt.ops.stack([mt.grad(g, x, v, retain_graph=True)[0] for v in mt.eye(3, dtype="float64")])
    assert_close(rows, expected)


def test_under_jit():
    w = randn(4, requires_grad=True)
    f = mt.jit(mt.vmap(lambda x: (x * w).exp().sum()))
    for x in (randn(SIZE, 4), randn(SIZE, 4) / 2):
        assert_close(mt.grad(f(x).sum(), w)[0], mt.grad((x * w).exp().sum(), w)[0])
    assert len(f.graphs) == 1


@pytest.mark.parametrize("name", ["rms_norm", "layer_norm", "row op"])
def test_gradients_of_a_shared_weight_of_rows(name, registered):
    if name == "row op":
        f = mt.row_op(name="test_vmap::scaled", shape="(x: [.., n], weight: [n]) -> [.., n]")(
            lambda x, weight: mt.ops.softmax(x) * weight
        )
    else:
        f = getattr(mt.ops, name)
    weight, x = mt.Tensor([1.0, 2.0, 3.0], requires_grad=True), mt.randn(4, 3)

    def gradient(x):
        return mt.grad((f(x, weight) * x).sum(), [weight])[0]

    expected = [gradient(x).numpy() for x in x]
    np.testing.assert_allclose(mt.vmap(gradient)(x).numpy(), expected, rtol=1e-6)
