"""Gradients of jitted functions."""

import numpy as np
import pytest
from jit_checks import assert_same, bits, randn

import minitensor as mt


def check(f, *inputs):
    """Gradients through a jitted function, and within one, are those of the function."""

    def gradients(f):
        leaves = [t.detach().clone().requires_grad_() for t in inputs]
        out = f(*leaves)
        (out * out).sum().backward()
        return [out, *(leaf.grad for leaf in leaves)]

    def inside(*tensors):
        leaves = [t.detach().clone().requires_grad_() for t in tensors]
        out = f(*leaves)
        return [out, *mt.grad((out * out).sum(), leaves)]

    jitted = mt.jit(f)
    for _ in range(3):
        assert bits(gradients(jitted)) == bits(gradients(f))
    assert_same(inside, inputs, tuple(t + 1 for t in inputs), graphs=1)
    return jitted


def test_chain():
    check(lambda x, y: (x * y).tanh() * y.exp() + x, randn(3, 4), randn(4))


def test_rows_and_products():
    check(lambda x, w: mt.ops.softmax(mt.ops.gelu(x @ w), axis=-1), randn(3, 4), randn(4, 5))


def test_slices_and_in_place():
    def f(x):
        y = x * 2
        y[1:] = y[:-1].clone() * x[1:]
        y[0] *= 3
        return y

    check(f, randn(5))


def test_convolution():
    def f(x, w):
        return mt.ops.relu(mt.ops.conv2d(x, w)).mean(axis=(2, 3))

    check(f, randn(2, 3, 6, 6), randn(4, 3, 3, 3))


def test_gradient_of_a_gradient():
    def second(f):
        x = randn(4).requires_grad_()
        (g,) = mt.grad(f(x).sum(), x, create_graph=True)
        (h,) = mt.grad((g * g).sum(), x)
        return h.numpy()

    def f(x):
        return x.tanh() * x.exp()

    jitted = mt.jit(f)
    jitted(randn(4).requires_grad_())
    np.testing.assert_allclose(second(jitted), second(f), rtol=1e-5)
    assert mt.testing.gradcheck(jitted, randn(3).astype("float64"))


def test_arguments_with_a_history():
    w = randn(3).requires_grad_()
    jitted = mt.jit(lambda x: x * x + w)
    for _ in range(3):
        w.grad = None
        jitted(w * 3).sum().backward()
        np.testing.assert_allclose(w.grad.numpy(), 18 * w.detach().numpy() + 1, rtol=1e-6)


def test_recording_mode_is_part_of_the_kind_of_call():
    x = randn(3).requires_grad_()
    jitted = mt.jit(lambda x: x * 2)
    for _ in range(2):
        assert jitted(x).requires_grad
        with mt.no_grad():
            assert not jitted(x).requires_grad
        assert not jitted(x.detach()).requires_grad


def test_hooks_of_parameters_run_once():
    w = randn(3).requires_grad_()
    w.register_hook(lambda g: g * 3)
    jitted = mt.jit(lambda x: (x * w).sum())
    for _ in range(3):
        w.grad = None
        jitted(mt.ones(3)).backward()
        assert w.grad.tolist() == [3, 3, 3]
        (g,) = mt.grad(jitted(mt.ones(3)), w, create_graph=True)
        assert g.tolist() == [3, 3, 3]


def test_one_leaf_passed_twice():
    x = mt.Tensor([3.0], requires_grad=True)
    jitted = mt.jit(lambda x, y: x * y)
    for _ in range(3):
        x.grad = None
        jitted(x, x).sum().backward()
        assert x.grad.tolist() == [6]


def test_an_argument_that_is_also_captured():
    p = mt.Tensor([2.0], requires_grad=True)
    jitted = mt.jit(lambda x: x * p)
    for factor, expected in ((1, 4), (2, 8), (3, 12), (1, 4)):
        p.grad = None
        y = jitted(p if factor == 1 else p * factor)
        y.sum().backward()
        assert (y.item(), p.grad.item()) == (4 * factor, expected)


def test_views_of_a_captured_leaf_and_its_detached_copy():
    w = randn(2, 2).requires_grad_()

    def f(x):
        return (w.detach() * x).sum() + (w[::1] * w).sum() + (w.reshape(2, 2) * x).sum()

    def gradient(f):
        w.grad = None
        f(mt.ones((2, 2))).backward()
        return w.grad.numpy()

    jitted = mt.jit(f)
    for _ in range(3):
        np.testing.assert_array_equal(gradient(jitted), gradient(f))


def test_backward_inside_on_arguments():
    def f(x, y):
        (x * x * y).sum().backward()
        return x.grad * 1

    jitted = mt.jit(f)
    a, b = (mt.Tensor([v], requires_grad=True) for v in (1.0, 2.0))
    c, d = (mt.Tensor([v], requires_grad=True) for v in (1.0, 2.0))
    for first, second in ((0, 1), (1, 0), (0, 0), (1, 1), (0, 1)):
        one, other = (a, b), (c, d)
        assert jitted(one[first], one[second]).tolist() == f(other[first], other[second]).tolist()
        assert [None if t.grad is None else t.grad.tolist() for t in one] == [
            None if t.grad is None else t.grad.tolist() for t in other
        ]


def test_backward_inside_beyond_an_argument():
    p = randn(3).requires_grad_()
    with pytest.raises(RuntimeError, match="reaches an argument that has a history"):
        mt.jit(lambda x: (x * x).sum().backward())(p * 2)
    with pytest.raises(RuntimeError, match=r"use mt\.grad"):
        mt.jit(lambda x: (p * x).exp().sum().backward(create_graph=True))(randn(3))


def test_hooks_that_are_added_later():
    w = randn(3).requires_grad_()
    jitted = mt.jit(lambda x: (x * w).sum().backward())
    for factor in (1, 1, 5, 5):
        if factor == 5 and not w.requires_grad:
            break
        w.grad = None
        jitted(mt.ones(3))
        assert w.grad.tolist() == [1, 1, 1]
    with w.register_hook(lambda g: g * 5):
        for _ in range(3):
            w.grad = None
            jitted(mt.ones(3))
            assert w.grad.tolist() == [5, 5, 5]


def test_results_that_are_not_used():
    x = mt.Tensor([1.0, 2.0], requires_grad=True)
    c = mt.Tensor([float("inf"), 1.0])
    jitted = mt.jit(lambda x, c: (x @ c, x * 2))
    for _ in range(2):
        x.grad = None
        jitted(x, c)[1].sum().backward()
        assert x.grad.tolist() == [2, 2]


def test_a_second_pass_through_a_released_graph_is_an_error():
    x = randn(3).requires_grad_()
    jitted = mt.jit(lambda x: x.exp())
    for _ in range(2):
        y = jitted(x).sum()
        y.backward()
        with pytest.raises(RuntimeError, match="retain_graph"):
            y.backward()


def test_an_op_without_a_gradient_fails_in_the_backward_pass():
    x = randn(3).requires_grad_()
    jitted = mt.jit(lambda x: mt.ops.isfinite(x).astype("float32") + mt.ops.random.normal(key, (3,)) + mt.ops.ceil(x))
    key = mt.Tensor([1, 2], dtype="uint64")
    for _ in range(2):
        jitted(x).sum().backward()
    assert not x.grad.numpy().any()


def test_changing_a_saved_tensor_is_noticed():
    x = randn(3).requires_grad_()
    w = randn(3)
    jitted = mt.jit(lambda x: x * w)
    for _ in range(2):
        y = jitted(x)
        w += 1
        with pytest.raises(RuntimeError, match="changed in place"):
            y.sum().backward()


def halves(h):
    n = h.shape[-1] // 2
    return (h[..., :n] * h[..., n:].sigmoid()).sum()


def rotated(h):
    n = h.shape[-1] // 2
    a, b = h[..., :n], h[..., -n:]
    return (mt.ops.concat([a * 2 - b * 3, a * 4 + b], axis=-1) * h.exp()).sum()


def unpacked(h):
    a, b, c, d = h
    return ((a * b.tanh() + c) * d).sum()


def columns(h):
    return (h[:, 0] * h[:, 3].exp() - h[:, 1] * h[:, 2]).sum()


@pytest.mark.parametrize(
    ("f", "adds"), [(halves, 0), (rotated, 1), (unpacked, 0), (columns, 0)], ids=lambda f: getattr(f, "__name__", None)
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_gradients_of_parts_that_cover_a_tensor_are_joined(f, adds, dtype):
    def gradient(h):
        h = h.detach().requires_grad_()
        return mt.grad(f(h), [h])[0]

    h = mt.Tensor(np.random.default_rng(3).standard_normal((4, 4))).astype(dtype)
    jitted = mt.jit(gradient)
    jitted(h)
    assert jitted(h).tolist() == gradient(h).tolist()
    ops = jitted.graphs[0].ops
    assert "concat" in ops and "unslice" not in ops and sum(op == "add" for op in ops) <= adds


@pytest.mark.parametrize(
    "f",
    [
        lambda h: h[:2].exp().sum() + (h[1:] ** 3).sum(),
        lambda h: h[:2].exp().sum() + (h[1:3] ** 3).sum(),
        lambda h: h[::2].exp().sum() + (h[1::2] ** 3).sum(),
        lambda h: h[:1].exp().sum() + (h[2:] ** 3).sum(),
        lambda h: h[:2].exp().sum() + (h[:, 2:] ** 3).sum(),
        lambda h: (h[:2, :2].exp() + h[2:, :2] ** 3).sum() + (h[:2, 2:] * h[2:, 2:]).sum(),
        lambda h: (h[0:0].exp()).sum() + (h[:2] ** 3).sum() + h[2:].tanh().sum() + h.sin().sum() + (h * h).sum(),
        lambda h: sum((h[i].exp() * h[3 - i]).sum() for i in range(4)),
    ],
)
def test_gradients_of_other_parts(f):
    def gradient(h):
        h = h.detach().requires_grad_()
        return mt.grad(f(h), [h])[0]

    h = mt.Tensor(np.random.default_rng(3).standard_normal((4, 4)))
    jitted = mt.jit(gradient)
    jitted(h)
    np.testing.assert_allclose(jitted(h).numpy(), gradient(h).numpy(), rtol=1e-12)


def test_second_derivatives_of_parts():
    def second(h):
        h = h.detach().requires_grad_()
        first = mt.grad(rotated(h) * 0.5, [h], create_graph=True)[0]
        return mt.grad((first * first).sum(), [h])[0]

    def through(h):
        h = h.detach().requires_grad_()
        first = mt.jit(lambda h: mt.grad(rotated(h) * 0.5, [h], create_graph=True)[0])(h)
        return mt.grad((first * first).sum(), [h])[0]

    h = mt.Tensor(np.random.default_rng(3).standard_normal((4, 4)))
    jitted = mt.jit(second)
    jitted(h)
    np.testing.assert_allclose(jitted(h).numpy(), second(h).numpy(), rtol=1e-12)
    np.testing.assert_allclose(through(h).numpy(), second(h).numpy(), rtol=1e-12)


def test_a_part_that_is_changed_later_is_not_joined():
    def f(a, b):
        whole = mt.ops.unslice(a, [4], 0, 0, 2)
        a += 1
        return whole + mt.ops.unslice(b, [4], 0, 2, 4)

    jitted = mt.jit(f)
    for _ in range(2):
        assert jitted(mt.Tensor([1.0, 2.0]), mt.Tensor([3.0, 4.0])).tolist() == [1, 2, 3, 4]


def test_a_gradient_may_share_memory_with_a_captured_tensor():
    flat, w = mt.arange(6).astype("float32"), mt.ones(3).requires_grad_()

    @mt.jit
    def step(x):
        w.grad = None
        (w * x).sum().backward()
        return (flat * flat).sum()

    for gradient in (flat[:3], flat[:3], mt.ones(3), flat[3:], flat[:3]):
        w.grad = gradient
        assert step(mt.ones(3)).item() == 55


def test_leaves_may_share_a_gradient():
    a, b = (mt.ones(2).requires_grad_() for _ in range(2))
    f = mt.jit(lambda x: x * a.grad + 10 * b.grad)
    for _ in range(3):
        a.grad = b.grad = mt.ones(2)
        assert f(mt.ones(2)).numpy().tolist() == [11, 11]
        a.grad, b.grad = mt.full(2, 2.0), mt.full(2, 3.0)
        assert f(mt.ones(2)).numpy().tolist() == [32, 32]


def test_an_argument_may_share_memory_with_a_gradient():
    w = mt.ones(3).requires_grad_()
    f = mt.jit(lambda x: x.sum() + w.grad.sum())
    for _ in range(2):
        x = mt.ones(6)
        w.grad = x[:3]
        assert f(x).item() == 9
        w.grad = mt.full(3, 5.0)
        assert f(x).item() == 21
        w.grad = x[3:]
        assert f(x).item() == 9


def test_gradients_can_be_exchanged():
    a, b = (mt.ones(1).requires_grad_() for _ in range(2))

    @mt.jit
    def exchange(x):
        a.grad, b.grad = b.grad, a.grad
        return x * 1

    a.grad, b.grad = mt.Tensor([1.0]), mt.Tensor([5.0])
    for expected in (5, 1, 5, 1):
        exchange(mt.ones(1))
        assert (a.grad.item(), b.grad.item()) == (expected, 6 - expected)
