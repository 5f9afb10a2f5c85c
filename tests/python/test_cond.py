"""`mt.cond`."""

import functools

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


def test_each_run_chooses():
    def f(x):
        return mt.cond(x.sum() > 0, lambda x: (x * 2).exp(), lambda x: x - 1, x)

    jitted = assert_same(f, (POSITIVE,), (NEGATIVE,))
    assert count(jitted, "cond") == 1
    np.testing.assert_array_equal(jitted(NEGATIVE).numpy(), [-2, -3, -4])


def test_gradients():
    def f(x, y):
        return mt.cond(x.sum() > 0, lambda x, y: (x * y).tanh(), lambda x, y: x.exp() * 2, x, y)

    assert_same_gradients(f, (POSITIVE, randn(3)), (NEGATIVE, randn(3)))


def test_gradients_are_those_of_finite_differences():
    def f(x):
        return mt.cond(x.sum() > 0, lambda x: (x * x).sin(), lambda x: x.exp(), x)

    for sign in (1, -1):
        x = mt.Tensor(np.array([0.5, 1.5]) * sign)
        jitted = mt.jit(f)
        jitted(-x)
        value, gradient = gradients(jitted, x)
        for i in range(2):
            step = np.eye(2)[i] * 1e-6
            above, below = (np.square(jitted(x + mt.Tensor(s)).numpy()).sum() for s in (step, -step))
            assert abs((above - below) / 2e-6 - gradient.numpy()[i]) < 1e-6


def test_values_of_the_function_around_it():
    w = randn(3).requires_grad_()

    def f(x):
        h = (x * w).exp()
        k = h + 1
        return mt.cond(x.sum() > 0, lambda: h * k * w, lambda: k - x)

    assert_same_gradients(f, (POSITIVE,), (NEGATIVE,))
    jitted = mt.jit(f)
    for x in (POSITIVE, NEGATIVE, POSITIVE):
        found = []
        for g in (jitted, f):
            w.grad = None
            (g(x) ** 2).sum().backward()
            found.append(w.grad.numpy())
        np.testing.assert_allclose(*found, rtol=1e-5)


def test_functions_in_the_closure():
    def f(x):
        h = x * 3

        def inner(y):
            return y * h

        def outer(y):
            return inner(y) + h

        return mt.cond(x.sum() > 0, outer, functools.partial(inner), x)

    assert_same_gradients(f, (POSITIVE,), (NEGATIVE,))


def test_containers_and_defaults_in_the_closure():
    def f(x):
        h, layers = x * 3, [x * 2, {"k": (x.exp(), x)}]
        layers.append(layers)

        def first(y, z=h, *, w=h):
            return y * z * w + layers[1]["k"][0] * layers[0]

        return mt.cond(x.sum() > 0, first, lambda y: layers[0] * y, x)

    assert_same_gradients(f, (POSITIVE,), (NEGATIVE,))


def test_a_function_under_jit_as_branch():
    def f(x, wrap=lambda f: f):
        h = x * 3
        return mt.cond(x.sum() > 0, wrap(lambda x: x * h), wrap(lambda x: x + h), x)

    jitted = mt.jit(lambda x: f(x, mt.jit))
    for x in (POSITIVE, NEGATIVE, POSITIVE):
        assert_close(arrays(gradients(jitted, x)), arrays(gradients(f, x)))


def test_containers():
    def f(p):
        def first(p, q):
            return {"a": p["x"] * 2, "b": (q, None, 3)}

        return mt.cond(p["x"].sum() > 0, first, lambda p, q: {"a": p["x"], "b": (q + 1, None, 3)}, p, p["y"][0])

    assert_same(f, ({"x": POSITIVE, "y": [randn(2)]},), ({"x": NEGATIVE, "y": [randn(2)]},))


def test_integers_and_masks():
    def f(i, x):
        return mt.cond((i > 2).all(), lambda i, x: (i + 1, x > 0, x), lambda i, x: (i * 2, x < 0, -x), i, x)

    i = mt.Tensor([3, 4])
    assert_same(f, (i, POSITIVE), (-i, POSITIVE))
    assert_same_gradients(lambda x, i: f(i, x)[2], (POSITIVE, i), (POSITIVE, -i))


def test_the_predicate_may_depend_on_parameters():
    w = mt.Tensor([1.0], requires_grad=True)
    jitted = mt.jit(lambda x: mt.cond((w * x).sum() > 0, lambda: w * x * 2, lambda: w * x * 3))
    for value in (1.0, -1.0, 2.0):
        with mt.no_grad():
            w[0] = value
        w.grad = None
        y = jitted(mt.ones(1))
        y.backward()
        factor = 2 if value > 0 else 3
        assert (y.item(), w.grad.item()) == (value * factor, factor)
    assert len(jitted.graphs) == 1


def test_a_branch_without_a_gradient():
    w = mt.ones(3, requires_grad=True)
    jitted = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: w * x, lambda: mt.ones(3)))
    for x, expected in ((NEGATIVE, [0, 0, 0]), (POSITIVE, [1, 2, 3]), (NEGATIVE, [0, 0, 0])):
        w.grad = None
        jitted(x).sum().backward()
        assert w.grad.tolist() == expected


def test_parameters_that_no_branch_uses_get_no_gradient():
    class Both(mt.nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.other = mt.nn.Linear(3, 3), mt.nn.Linear(3, 3)

        def forward(self, x):
            return mt.cond(x.sum() > 0, lambda: self.used(x), lambda: x * 1)

    model = Both()
    jitted = mt.jit(model)
    for x in (NEGATIVE, POSITIVE):
        jitted(x).sum().backward()
        assert [p.grad is None for p in model.parameters()] == [False, False, True, True]


def test_modules():
    model = mt.nn.Sequential(mt.nn.Linear(3, 3), mt.nn.Function(mt.ops.tanh), mt.nn.Linear(3, 3))

    def f(x):
        return mt.cond(x.sum() > 0, model, lambda x: x * 2, x)

    jitted = mt.jit(f)
    for x in (POSITIVE, NEGATIVE, POSITIVE):
        found = []
        for g in (jitted, f):
            model.zero_grad()
            y = g(x)
            if y.requires_grad:
                (y**2).sum().backward()
            found.append([np.zeros(p.shape) if p.grad is None else p.grad.numpy() for p in model.parameters()])
        assert_close([a.astype("float32") for a in found[0]], [a.astype("float32") for a in found[1]])
    with mt.no_grad():
        next(iter(model.parameters()))[:] = 0
    assert_close(arrays(jitted(POSITIVE)), arrays(f(POSITIVE)))


def test_training():
    def run(wrap):
        mt.manual_seed(3)
        model = mt.nn.Linear(3, 1)
        optimizer = mt.optim.Adam(model.parameters(), lr=0.1)

        @wrap
        def step(x):
            loss = mt.cond(x.sum() > 0, lambda: (model(x) - 1) ** 2, lambda: (model(x) * 2).exp()).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return [step(x).item() for x in [POSITIVE, NEGATIVE, POSITIVE, POSITIVE, NEGATIVE] * 3]

    np.testing.assert_allclose(run(mt.jit), run(lambda f: f), rtol=1e-4)


def test_results_have_their_own_memory():
    def f(x, y):
        z = mt.cond(x.sum() > 0, lambda x, y: x, lambda x, y: y[::-1] * 1, x, y)
        z += 1
        return x * 1, y * 1, z

    assert_same(f, (POSITIVE, randn(3)), (NEGATIVE, randn(3)))
    assert POSITIVE.tolist() == [1, 2, 3]
    constant = mt.ones(3)
    fixed = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: (constant, mt.ones(3)), lambda: (x, x)))
    for _ in range(3):
        for t in fixed(POSITIVE):
            t += 1
            assert t.tolist() == [2, 2, 2]
    same = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: (x, x), lambda: (x, x + 1)))
    for _ in range(2):
        a, b = same(POSITIVE)
        a += 1
        assert (POSITIVE.tolist(), b.tolist()) == ([1, 2, 3], [1, 2, 3])


def test_layouts():
    def f(x):
        y = x.T
        return mt.cond(x.sum() > 0, lambda x, y: (x.T, y), lambda x, y: (y * 2, x.T + 1), x, y), y * 1

    x = randn(3, 3)
    x = x * x
    assert_same(f, (x,), (-x,))
    assert_same(lambda x: f(x)[0], (x.T,), (-x.T,), graphs=None)
    assert_same_gradients(lambda x: f(x)[0], (x,), (-x,))


def test_captured_tensors_of_other_layouts():
    table = randn(3, 3).T

    def f(x):
        y = (x * 2).T
        part = y[1:].T[:2]
        return mt.cond(x.sum() > 0, lambda: (part * table[:2, 1:] + y[:2, :2], y.T), lambda: (part[::-1] * 1, y))

    x = randn(3, 3)
    x = x * x
    assert_same(f, (x,), (-x,))
    assert_same_gradients(f, (x,), (-x,))


def test_operands_that_are_one_tensor():
    def f(x):
        return mt.cond(x.sum() > 0, lambda a, b, c: a * b * x, lambda a, b, c: a - b * c, x, x, x.detach())

    assert_same_gradients(f, (POSITIVE,), (NEGATIVE,))


def test_nested():
    def f(x):
        h = x * 2

        def inner(y):
            k = y * h
            return mt.cond(y[0] > 2, lambda y: k * h * y, lambda y: y - h + k, y)

        return mt.cond(x.sum() > 0, inner, lambda y: y * h, x)

    jitted = assert_same(f, (POSITIVE,), (POSITIVE * 3,), (NEGATIVE,))
    assert count(jitted, "cond") == 1
    assert_same_gradients(f, (POSITIVE,), (POSITIVE * 3,), (NEGATIVE,))


def test_second_derivatives_inside():
    def f(x, y):
        z = mt.cond(x.sum() > 0, lambda x, y: (x * x * y).sum(), lambda x, y: (x.exp() * y * y).sum(), x, y)
        found = mt.grad(z, [x, y], create_graph=True)
        return mt.grad(sum((g * g).sum() for g in found), [x, y])

    jitted = mt.jit(f)
    for x in (POSITIVE, NEGATIVE, POSITIVE):
        leaves = [x.detach().requires_grad_(), randn(3).requires_grad_()]
        assert_close(arrays(jitted(*leaves)), arrays(f(*leaves)))


def test_a_second_derivative_through_a_graph_is_refused():
    jitted = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: x * x * x, lambda: x))
    x = POSITIVE.detach().requires_grad_()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="gradient of a gradient"):
            mt.grad(jitted(x).sum(), x, create_graph=True)


def test_state_is_watched():
    scale = 2.0
    jitted = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: x * scale, lambda: -x * scale))
    for scale in (2.0, 3.0, 2.0):
        for x in (POSITIVE, NEGATIVE):
            np.testing.assert_array_equal(jitted(x).numpy(), [scale, 2 * scale, 3 * scale])


def test_captured_tensors_are_read_in_each_run():
    table = {"w": mt.ones(3)}
    jitted = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: x * table["w"], lambda: x))
    assert jitted(POSITIVE).tolist() == [1, 2, 3]
    table["w"] += 1
    assert jitted(POSITIVE).tolist() == [2, 4, 6]
    table["w"] = mt.full((3,), 5.0)
    assert jitted(POSITIVE).tolist() == [5, 10, 15]


def test_a_buffer_that_the_function_changes_before():
    def run(wrap):
        total = mt.zeros(3)

        @wrap
        def f(x):
            total.__iadd__(x)
            return mt.cond(x.sum() > 0, lambda: total * x, lambda: total - x)

        return [f(x).tolist() for x in (POSITIVE, POSITIVE, NEGATIVE, POSITIVE, POSITIVE)]

    assert run(mt.jit) == run(lambda f: f)


def test_a_parameter_that_is_frozen_or_replaced():
    linear = mt.nn.Linear(3, 3)
    jitted = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: linear(x), lambda: x * 1))
    for needs in (True, False, True):
        linear.weight = randn(3, 3).requires_grad_(needs)
        linear.bias.grad = None
        y = jitted(POSITIVE)
        y.sum().backward()
        np.testing.assert_allclose(y.detach().numpy(), linear(POSITIVE).detach().numpy(), rtol=1e-6)
        assert (linear.weight.grad is not None) == needs
        assert linear.bias.grad.tolist() == [1, 1, 1]


def test_hooks_of_parameters_run_once():
    w = mt.ones(3, requires_grad=True)
    w.register_hook(lambda g: g * 3)
    jitted = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: (x * w).sum(), lambda: x.sum()))
    for _ in range(3):
        w.grad = None
        jitted(POSITIVE).backward()
        assert w.grad.tolist() == [3, 6, 9]


def test_a_known_predicate():
    jitted = mt.jit(lambda x, p: mt.cond(p, lambda x: x * 2, lambda x: (x, x), x))
    assert jitted(POSITIVE, True).tolist() == [2, 4, 6]
    assert len(jitted(POSITIVE, False)) == 2


def test_modes():
    jitted = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: x * 2, lambda: x))
    x = POSITIVE.detach().requires_grad_()
    for _ in range(2):
        with mt.no_grad():
            assert not jitted(x).requires_grad
        assert jitted(x).requires_grad


def test_changing_own_tensors_in_place():
    def f(x):
        def fill(x):
            total = x * 0 + mt.zeros(3)
            for _ in range(2):
                total += x * x
            return total * x

        return mt.cond(x.sum() > 0, fill, lambda x: x * mt.ones(3), x)

    assert_same_gradients(f, (POSITIVE,), (NEGATIVE,))


def test_a_branch_that_would_not_end_is_not_run():
    def f(x):
        return mt.cond(x > 0, lambda x: mt.while_loop(lambda x: x != 0, lambda x: x - 1, x), lambda x: x * 2, x)

    assert_same(f, (mt.tensor(-3.0),), (mt.tensor(5.0),))


def test_nothing_is_returned():
    assert mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: (None, 2), lambda: (None, 2)))(POSITIVE) == (None, 2)
