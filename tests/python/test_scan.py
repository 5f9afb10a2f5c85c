"""`mt.scan`."""

import numpy as np
import pytest
from control_flow_checks import (
    NEGATIVE,
    POSITIVE,
    arrays,
    assert_close,
    assert_same,
    assert_same_gradients,
    count,
    gradients,
    randn,
)

import minitensor as mt


def rnn(w):
    def f(h, xs):
        def step(h, x):
            h = (h @ w + x).tanh()
            return h, h * h

        return mt.scan(step, h, xs)

    return f


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7])
def test_against_numpy(length, reverse):
    xs = np.random.default_rng(0).standard_normal((length, 3))
    carry, expected = np.ones(3), [None] * length
    for i in range(length)[:: -1 if reverse else 1]:
        carry = carry * xs[i] + 1
        expected[i] = carry.sum()

    def f(xs):
        def step(c, x):
            c = c * x + 1
            return c, c.sum()

        return mt.scan(step, mt.ones(3, dtype="float64"), xs, reverse=reverse)

    jitted = mt.jit(f)
    for g in (f, jitted, jitted):
        got, ys = g(mt.Tensor(xs))
        np.testing.assert_allclose(got.numpy(), carry)
        np.testing.assert_allclose(ys.numpy(), expected)
    assert count(jitted, "scan") == 1


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients(reverse):
    w = randn(3, 3)

    def f(h, xs, w):
        k = w * 2

        def step(h, x):
            h = (h @ w + x).tanh()
            return h, (h * k).sum()

        return mt.scan(step, h, xs, reverse=reverse)

    assert_same_gradients(f, (randn(3), randn(5, 3), w), (randn(3) * 2, randn(5, 3) - 1, w + 1))


def test_gradients_are_those_of_finite_differences():
    jitted = mt.jit(lambda h, xs, w: rnn(w)(h, xs)[1])
    args = [randn(*shape, dtype="float64") for shape in ((2,), (3, 2), (2, 2))]
    found = gradients(jitted, *args)[1:]
    for t, g in zip(args, found, strict=True):
        for at in np.ndindex(t.shape):
            values = []
            for step in (1e-6, -1e-6):
                moved = t.clone()
                moved[at] += step
                values.append((jitted(*(moved if other is t else other for other in args)) ** 2).sum().item())
            assert abs((values[0] - values[1]) / 2e-6 - g[at].item()) < 1e-6


def test_many_steps_are_one_call_forward_and_backward():
    w = randn(4, 4) * 0.1
    w.requires_grad_()
    jitted = mt.jit(lambda h, xs: rnn(w)(h, xs)[1].sum())
    h, xs = randn(4), randn(1000, 4)
    eager = []
    for f in (lambda h, xs: rnn(w)(h, xs)[1].sum(), jitted, jitted):
        w.grad = None
        f(h, xs).backward()
        eager.append(w.grad.numpy())
    assert count(jitted, "scan") == 1 and jitted.graphs[0].gradient.count("control::scan(") == 1
    np.testing.assert_allclose(eager[1], eager[0], rtol=1e-3)
    np.testing.assert_array_equal(eager[1], eager[2])


def test_second_derivatives_inside():
    w = (randn(3, 3) * 0.5).requires_grad_()

    def f(h, xs):
        h, ys = rnn(w)(h, xs)
        found = mt.grad((ys * ys).sum() + h.sum(), [w], create_graph=True)
        return mt.grad(sum((g * g).sum() for g in found), [w])

    jitted = mt.jit(f)
    for factor in (1, 2, 1):
        args = randn(3) * factor, randn(4, 3)
        assert_close(arrays(jitted(*args)), arrays(f(*args)), rtol=1e-3)


def test_third_derivatives_inside():
    def f(x):
        _, ys = mt.scan(lambda c, a: (c * x, c * x * a), x, mt.Tensor([1.0, 2.0, 3.0]))
        y = ys.sum()
        for _ in range(3):
            (y,) = mt.grad(y, x, create_graph=True)
        return y

    # ys are x², 2x³ and 3x⁴.
    for _ in range(2):
        x = mt.tensor(1.5, requires_grad=True)
        assert abs(mt.jit(f)(x).item() - (12 + 72 * 1.5)) < 1e-3


def test_structures():
    def f(init, xs):
        def step(carry, x):
            a, rest = carry
            i = rest["i"] + 1
            return (a * x["x"], {"i": i}), {"a": a, "both": [x["x"] + i, None], "name": "n"}

        return mt.scan(step, init, xs)

    args = (randn(2), {"i": mt.tensor(0)}), {"x": randn(4, 2)}
    assert_same(f, args, ((randn(2) + 1, {"i": mt.tensor(5)}), {"x": randn(4, 2) * 2}))
    assert_same_gradients(
        lambda a, x: f((a, {"i": mt.tensor(0)}), {"x": x})[1]["both"][0] * 1.0, (randn(2), randn(4, 2))
    )


def test_length_without_xs():
    def f(x):
        return mt.scan(lambda c, _: (c * 2, c), x, length=4)

    assert_same(f, (POSITIVE,), (NEGATIVE,))
    assert mt.scan(lambda c, x: (c * 2, None), mt.ones(()), None, length=3)[0].item() == 8


def test_without_a_carry():
    def f(xs):
        return mt.scan(lambda c, x: (None, x * x), None, xs)

    assert_same(f, (POSITIVE,), (NEGATIVE,))
    assert_same_gradients(lambda xs: f(xs)[1], (POSITIVE,), (NEGATIVE,))


def test_no_steps():
    def f(h, xs):
        return mt.scan(lambda h, x: (h + x, (h * x).sum()), h, xs)

    jitted = assert_same(f, (randn(3), mt.zeros((0, 3))))
    h, ys = jitted(randn(3), mt.zeros((0, 3)))
    assert (h.shape, ys.shape) == ((3,), (0,))
    assert_same(lambda h: mt.scan(lambda h, _: (h, h), h, length=0), (randn(3),))
    h = randn(3)
    same, _ = mt.scan(lambda h, x: (h, None), h, length=0)
    same += 1
    assert h.tolist() == randn(3).tolist()


def test_a_carry_without_a_gradient_that_gets_one():
    w = randn(3).requires_grad_()

    def f(x):
        return mt.scan(lambda c, _: (c * w, c), x, length=3)

    jitted = mt.jit(f)
    for x in (POSITIVE, NEGATIVE):
        found = []
        for g in (f, jitted):
            w.grad = None
            c, ys = g(x)
            (c.sum() + (ys * ys).sum()).backward()
            found.append(w.grad.numpy())
        np.testing.assert_allclose(found[1], found[0], rtol=1e-5)


def test_only_some_results_are_used():
    def f(h, xs):
        return mt.scan(lambda h, x: (h * x, h + x), h, xs)

    for k in range(2):
        assert_same_gradients(lambda h, xs, k=k: f(h, xs)[k], (randn(3), randn(4, 3)))


def test_branches_in_steps_and_scans_in_branches():
    def f(h, xs):
        def step(h, x):
            k = h * x
            return mt.cond(x.sum() > 0, lambda h: h * k, lambda h: h - k, h), k.sum()

        def both(h):
            return mt.scan(step, h, xs)

        return mt.cond(h.sum() > 0, both, lambda h: (h, xs[:, 0] * 1), h)

    h = randn(3)
    h = h * h
    jitted = assert_same(f, (h, randn(5, 3)), (-h, randn(5, 3)), (h, -randn(5, 3)))
    assert jitted.graphs[0].ops.count("control::cond") == 1
    assert_same_gradients(f, (h, randn(5, 3)), (-h, randn(5, 3)), (h, -randn(5, 3)))


def test_modules():
    cell = mt.nn.Linear(3, 3)

    def f(h, xs):
        return mt.scan(lambda h, x: ((cell(h) + x).tanh(), h), h, xs)[1].sum()

    found = []
    jitted = mt.jit(f)
    for g in (f, jitted, jitted):
        cell.zero_grad()
        g(randn(3), randn(6, 3)).backward()
        found.append([p.grad.numpy() for p in cell.parameters()])
    assert_close(found[1], found[0])
    assert_close(found[2], found[0])


def test_layouts():
    def f(h, xs):
        return mt.scan(lambda h, x: (h * x.T, x.T), h, xs)

    xs = randn(3, 3, 4).T
    assert_same(f, (randn(3, 3).T, xs), (randn(3, 3).T + 1, xs * 2), graphs=None)
    assert_same_gradients(f, (randn(3, 3).T, xs))
