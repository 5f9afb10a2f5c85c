"""`mt.cond`, `mt.while_loop` and `mt.scan`: a call of a graph computes what plain Python computes."""

import functools
import gc
import random
import threading

import numpy as np
import pytest

import minitensor as mt


def arrays(value):
    """The elements of all tensors in a result."""
    if isinstance(value, mt.Tensor):
        return value.detach().numpy()
    if isinstance(value, dict):
        return {name: arrays(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [arrays(item) for item in value]
    return value


def assert_close(got, expected, rtol=1e-5):
    if isinstance(expected, list):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_close(a, b, rtol)
    elif isinstance(expected, dict):
        assert list(got) == list(expected)
        assert_close(list(got.values()), list(expected.values()), rtol)
    elif isinstance(expected, np.ndarray):
        assert got.shape == expected.shape and got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=1e-6)
    else:
        assert got == expected


def assert_same(f, *calls, graphs=1):
    """One graph gives what the function gives, for all arguments in any order."""
    jitted = mt.jit(f)
    for args in (*calls, *reversed(calls), *calls):
        assert_close(arrays(jitted(*args)), arrays(f(*args)))
    if graphs is not None:
        assert len(jitted.graphs) == graphs
    return jitted


def gradients(f, *args):
    """The result of a function, and the gradients of the sum of its squares."""
    leaves = [t.detach().requires_grad_(t.dtype.is_floating_point) for t in args]
    result = f(*leaves)
    results = result if isinstance(result, (list, tuple)) else [result]
    loss = sum((t * t).sum() for t in results if t.requires_grad)
    found = mt.grad(loss, [t for t in leaves if t.requires_grad], allow_unused=True)
    # A graph returns zeros where eager mode finds that there is no path.
    return [result, *(mt.zeros_like(t) if g is None else g for t, g in zip(leaves, found, strict=False))]


def assert_same_gradients(f, *calls):
    """Gradients through a graph, and inside of one, are those of the function."""
    jitted = mt.jit(f)
    inside = mt.jit(lambda *args: gradients(f, *args))
    for args in (*calls, *reversed(calls), *calls):
        expected = arrays(gradients(f, *args))
        assert_close(arrays(gradients(jitted, *args)), expected)
        assert_close(arrays(inside(*args)), expected)
    assert len(jitted.graphs) == len(inside.graphs) == 1


def randn(*shape, dtype="float32"):
    return mt.Tensor(np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype(dtype))


def count(jitted, name):
    (graph,) = jitted.graphs
    return graph.ops.count(f"control::{name}")


POSITIVE, NEGATIVE = mt.Tensor([1.0, 2.0, 3.0]), mt.Tensor([-1.0, -2.0, -3.0])


class TestCond:
    def test_each_run_chooses(self):
        def f(x):
            return mt.cond(x.sum() > 0, lambda x: (x * 2).exp(), lambda x: x - 1, x)

        jitted = assert_same(f, (POSITIVE,), (NEGATIVE,))
        assert count(jitted, "cond") == 1
        np.testing.assert_array_equal(jitted(NEGATIVE).numpy(), [-2, -3, -4])

    def test_gradients(self):
        def f(x, y):
            return mt.cond(x.sum() > 0, lambda x, y: (x * y).tanh(), lambda x, y: x.exp() * 2, x, y)

        assert_same_gradients(f, (POSITIVE, randn(3)), (NEGATIVE, randn(3)))

    def test_gradients_are_those_of_finite_differences(self):
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

    def test_values_of_the_function_around_it(self):
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

    def test_functions_in_the_closure(self):
        def f(x):
            h = x * 3

            def inner(y):
                return y * h

            def outer(y):
                return inner(y) + h

            return mt.cond(x.sum() > 0, outer, functools.partial(inner), x)

        assert_same_gradients(f, (POSITIVE,), (NEGATIVE,))

    def test_containers_and_defaults_in_the_closure(self):
        def f(x):
            h, layers = x * 3, [x * 2, {"k": (x.exp(), x)}]
            layers.append(layers)

            def first(y, z=h, *, w=h):
                return y * z * w + layers[1]["k"][0] * layers[0]

            return mt.cond(x.sum() > 0, first, lambda y: layers[0] * y, x)

        assert_same_gradients(f, (POSITIVE,), (NEGATIVE,))

    def test_a_function_under_jit_as_branch(self):
        def f(x, wrap=lambda f: f):
            h = x * 3
            return mt.cond(x.sum() > 0, wrap(lambda x: x * h), wrap(lambda x: x + h), x)

        jitted = mt.jit(lambda x: f(x, mt.jit))
        for x in (POSITIVE, NEGATIVE, POSITIVE):
            assert_close(arrays(gradients(jitted, x)), arrays(gradients(f, x)))

    def test_containers(self):
        def f(p):
            def first(p, q):
                return {"a": p["x"] * 2, "b": (q, None, 3)}

            return mt.cond(p["x"].sum() > 0, first, lambda p, q: {"a": p["x"], "b": (q + 1, None, 3)}, p, p["y"][0])

        assert_same(f, ({"x": POSITIVE, "y": [randn(2)]},), ({"x": NEGATIVE, "y": [randn(2)]},))

    def test_integers_and_masks(self):
        def f(i, x):
            return mt.cond((i > 2).all(), lambda i, x: (i + 1, x > 0, x), lambda i, x: (i * 2, x < 0, -x), i, x)

        i = mt.Tensor([3, 4])
        assert_same(f, (i, POSITIVE), (-i, POSITIVE))
        assert_same_gradients(lambda x, i: f(i, x)[2], (POSITIVE, i), (POSITIVE, -i))

    def test_the_predicate_may_depend_on_parameters(self):
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

    def test_a_branch_without_a_gradient(self):
        w = mt.ones(3, requires_grad=True)
        jitted = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: w * x, lambda: mt.ones(3)))
        for x, expected in ((NEGATIVE, [0, 0, 0]), (POSITIVE, [1, 2, 3]), (NEGATIVE, [0, 0, 0])):
            w.grad = None
            jitted(x).sum().backward()
            assert w.grad.tolist() == expected

    def test_parameters_that_no_branch_uses_get_no_gradient(self):
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

    def test_modules(self):
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

    def test_training(self):
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

    def test_results_have_their_own_memory(self):
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

    def test_layouts(self):
        def f(x):
            y = x.T
            return mt.cond(x.sum() > 0, lambda x, y: (x.T, y), lambda x, y: (y * 2, x.T + 1), x, y), y * 1

        x = randn(3, 3)
        x = x * x
        assert_same(f, (x,), (-x,))
        assert_same(lambda x: f(x)[0], (x.T,), (-x.T,), graphs=None)
        assert_same_gradients(lambda x: f(x)[0], (x,), (-x,))

    def test_captured_tensors_of_other_layouts(self):
        table = randn(3, 3).T

        def f(x):
            y = (x * 2).T
            part = y[1:].T[:2]
            return mt.cond(x.sum() > 0, lambda: (part * table[:2, 1:] + y[:2, :2], y.T), lambda: (part[::-1] * 1, y))

        x = randn(3, 3)
        x = x * x
        assert_same(f, (x,), (-x,))
        assert_same_gradients(f, (x,), (-x,))

    def test_operands_that_are_one_tensor(self):
        def f(x):
            return mt.cond(x.sum() > 0, lambda a, b, c: a * b * x, lambda a, b, c: a - b * c, x, x, x.detach())

        assert_same_gradients(f, (POSITIVE,), (NEGATIVE,))

    def test_nested(self):
        def f(x):
            h = x * 2

            def inner(y):
                k = y * h
                return mt.cond(y[0] > 2, lambda y: k * h * y, lambda y: y - h + k, y)

            return mt.cond(x.sum() > 0, inner, lambda y: y * h, x)

        jitted = assert_same(f, (POSITIVE,), (POSITIVE * 3,), (NEGATIVE,))
        assert count(jitted, "cond") == 1
        assert_same_gradients(f, (POSITIVE,), (POSITIVE * 3,), (NEGATIVE,))

    def test_second_derivatives_inside(self):
        def f(x, y):
            z = mt.cond(x.sum() > 0, lambda x, y: (x * x * y).sum(), lambda x, y: (x.exp() * y * y).sum(), x, y)
            found = mt.grad(z, [x, y], create_graph=True)
            return mt.grad(sum((g * g).sum() for g in found), [x, y])

        jitted = mt.jit(f)
        for x in (POSITIVE, NEGATIVE, POSITIVE):
            leaves = [x.detach().requires_grad_(), randn(3).requires_grad_()]
            assert_close(arrays(jitted(*leaves)), arrays(f(*leaves)))

    def test_a_second_derivative_through_a_graph_is_refused(self):
        jitted = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: x * x * x, lambda: x))
        x = POSITIVE.detach().requires_grad_()
        for _ in range(2):
            with pytest.raises(RuntimeError, match="gradient of a gradient"):
                mt.grad(jitted(x).sum(), x, create_graph=True)

    def test_state_is_watched(self):
        scale = 2.0
        jitted = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: x * scale, lambda: -x * scale))
        for scale in (2.0, 3.0, 2.0):
            for x in (POSITIVE, NEGATIVE):
                np.testing.assert_array_equal(jitted(x).numpy(), [scale, 2 * scale, 3 * scale])

    def test_captured_tensors_are_read_in_each_run(self):
        table = {"w": mt.ones(3)}
        jitted = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: x * table["w"], lambda: x))
        assert jitted(POSITIVE).tolist() == [1, 2, 3]
        table["w"] += 1
        assert jitted(POSITIVE).tolist() == [2, 4, 6]
        table["w"] = mt.full((3,), 5.0)
        assert jitted(POSITIVE).tolist() == [5, 10, 15]

    def test_a_buffer_that_the_function_changes_before(self):
        def run(wrap):
            total = mt.zeros(3)

            @wrap
            def f(x):
                total.__iadd__(x)
                return mt.cond(x.sum() > 0, lambda: total * x, lambda: total - x)

            return [f(x).tolist() for x in (POSITIVE, POSITIVE, NEGATIVE, POSITIVE, POSITIVE)]

        assert run(mt.jit) == run(lambda f: f)

    def test_a_parameter_that_is_frozen_or_replaced(self):
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

    def test_hooks_of_parameters_run_once(self):
        w = mt.ones(3, requires_grad=True)
        w.register_hook(lambda g: g * 3)
        jitted = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: (x * w).sum(), lambda: x.sum()))
        for _ in range(3):
            w.grad = None
            jitted(POSITIVE).backward()
            assert w.grad.tolist() == [3, 6, 9]

    def test_a_known_predicate(self):
        jitted = mt.jit(lambda x, p: mt.cond(p, lambda x: x * 2, lambda x: (x, x), x))
        assert jitted(POSITIVE, True).tolist() == [2, 4, 6]
        assert len(jitted(POSITIVE, False)) == 2

    def test_modes(self):
        jitted = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: x * 2, lambda: x))
        x = POSITIVE.detach().requires_grad_()
        for _ in range(2):
            with mt.no_grad():
                assert not jitted(x).requires_grad
            assert jitted(x).requires_grad

    def test_changing_own_tensors_in_place(self):
        def f(x):
            def fill(x):
                total = x * 0 + mt.zeros(3)
                for _ in range(2):
                    total += x * x
                return total * x

            return mt.cond(x.sum() > 0, fill, lambda x: x * mt.ones(3), x)

        assert_same_gradients(f, (POSITIVE,), (NEGATIVE,))

    def test_a_branch_that_would_not_end_is_not_run(self):
        def f(x):
            return mt.cond(x > 0, lambda x: mt.while_loop(lambda x: x != 0, lambda x: x - 1, x), lambda x: x * 2, x)

        assert_same(f, (mt.tensor(-3.0),), (mt.tensor(5.0),))

    def test_nothing_is_returned(self):
        assert mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: (None, 2), lambda: (None, 2)))(POSITIVE) == (None, 2)


class TestWhileLoop:
    def test_each_run_makes_its_own_number_of_steps(self):
        def f(x):
            return mt.while_loop(lambda s: s[0] <= x, lambda s: (s[0] * 2, s[1] + 1), (mt.ones(()), mt.tensor(0)))

        jitted = assert_same(f, (mt.tensor(5.0),), (mt.tensor(1000.0),), (mt.tensor(0.0),))
        assert [t.item() for t in jitted(mt.tensor(1000.0))] == [1024, 10]
        assert count(jitted, "while_loop") == 1

    def test_no_step(self):
        def f(x):
            y = mt.while_loop(lambda x: x.sum() > 100, lambda x: x * 0.5, x)
            y += 1
            return x * 1, y

        assert_same(f, (POSITIVE,), (POSITIVE * 50,), (NEGATIVE,))

    def test_values_of_the_function_around_it(self):
        def f(x, limit):
            step = x.exp()
            end = limit * 2
            return mt.while_loop(lambda v: v.sum() < end, lambda v: v + step, x)

        assert_same(f, (POSITIVE, mt.tensor(100.0)), (NEGATIVE, mt.tensor(3.0)))

    def test_loops_in_branches_and_branches_in_loops(self):
        def collatz(n):
            def step(s):
                n, k = s
                return mt.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), k + 1

            return mt.while_loop(lambda s: s[0] != 1, step, (n, mt.tensor(0)))[1]

        jitted = assert_same(collatz, *((mt.tensor(n),) for n in (1, 6, 27, 97)))
        assert jitted(mt.tensor(27)).item() == 111

    def test_the_gradient_is_refused(self):
        x = mt.tensor(1.0, requires_grad=True)
        jitted = mt.jit(lambda x: mt.while_loop(lambda v: v < 10, lambda v: v * 2, x))
        for _ in range(2):
            y = jitted(x)
            assert y.item() == 16
            with pytest.raises(RuntimeError, match=r"mt\.while_loop has no gradient under mt\.jit.*mt\.scan"):
                y.backward()
        # Also if the first value is the result, and in a branch.
        for f in (
            lambda x: mt.while_loop(lambda v: v > 10, lambda v: v * 0, x),
            lambda x: mt.while_loop(lambda v: v > 10, lambda v: mt.zeros(()), x),
            lambda x: mt.cond(x > 0, lambda: mt.while_loop(lambda v: v < 10, lambda v: v * 2, x), lambda: x * 1),
        ):
            y = mt.jit(f)(x)
            with pytest.raises(RuntimeError, match=r"mt\.while_loop has no gradient under mt\.jit"):
                y.backward()
        # Not if none is needed.
        w = mt.ones((), requires_grad=True)
        other = mt.jit(lambda x: mt.while_loop(lambda v: v < 10, lambda v: v * 2, x.detach()) * w)
        for _ in range(2):
            w.grad = None
            other(x).backward()
            assert w.grad.item() == 16

    def test_gradients_flow_in_eager_mode(self):
        x = mt.tensor(1.5, requires_grad=True)
        mt.while_loop(lambda v: v < 10, lambda v: v * 2, x).backward()
        assert x.grad.item() == 8


def rnn(w):
    def f(h, xs):
        def step(h, x):
            h = (h @ w + x).tanh()
            return h, h * h

        return mt.scan(step, h, xs)

    return f


class TestScan:
    @pytest.mark.parametrize("reverse", [False, True])
    @pytest.mark.parametrize("length", [1, 2, 7])
    def test_against_numpy(self, length, reverse):
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
    def test_gradients(self, reverse):
        w = randn(3, 3)

        def f(h, xs, w):
            k = w * 2

            def step(h, x):
                h = (h @ w + x).tanh()
                return h, (h * k).sum()

            return mt.scan(step, h, xs, reverse=reverse)

        assert_same_gradients(f, (randn(3), randn(5, 3), w), (randn(3) * 2, randn(5, 3) - 1, w + 1))

    def test_gradients_are_those_of_finite_differences(self):
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

    def test_many_steps_are_one_call_forward_and_backward(self):
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

    def test_second_derivatives_inside(self):
        w = (randn(3, 3) * 0.5).requires_grad_()

        def f(h, xs):
            h, ys = rnn(w)(h, xs)
            found = mt.grad((ys * ys).sum() + h.sum(), [w], create_graph=True)
            return mt.grad(sum((g * g).sum() for g in found), [w])

        jitted = mt.jit(f)
        for factor in (1, 2, 1):
            args = randn(3) * factor, randn(4, 3)
            assert_close(arrays(jitted(*args)), arrays(f(*args)), rtol=1e-3)

    def test_third_derivatives_inside(self):
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

    def test_structures(self):
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

    def test_length_without_xs(self):
        def f(x):
            return mt.scan(lambda c, _: (c * 2, c), x, length=4)

        assert_same(f, (POSITIVE,), (NEGATIVE,))
        assert mt.scan(lambda c, x: (c * 2, None), mt.ones(()), None, length=3)[0].item() == 8

    def test_without_a_carry(self):
        def f(xs):
            return mt.scan(lambda c, x: (None, x * x), None, xs)

        assert_same(f, (POSITIVE,), (NEGATIVE,))
        assert_same_gradients(lambda xs: f(xs)[1], (POSITIVE,), (NEGATIVE,))

    def test_no_steps(self):
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

    def test_a_carry_without_a_gradient_that_gets_one(self):
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

    def test_only_some_results_are_used(self):
        def f(h, xs):
            return mt.scan(lambda h, x: (h * x, h + x), h, xs)

        for k in range(2):
            assert_same_gradients(lambda h, xs, k=k: f(h, xs)[k], (randn(3), randn(4, 3)))

    def test_branches_in_steps_and_scans_in_branches(self):
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

    def test_modules(self):
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

    def test_layouts(self):
        def f(h, xs):
            return mt.scan(lambda h, x: (h * x.T, x.T), h, xs)

        xs = randn(3, 3, 4).T
        assert_same(f, (randn(3, 3).T, xs), (randn(3, 3).T + 1, xs * 2), graphs=None)
        assert_same_gradients(f, (randn(3, 3).T, xs))


def broken(x):
    raise KeyError("mine")


class TestRefused:
    @pytest.mark.parametrize(
        ("other", "text"),
        [
            (
                lambda x: (x, x),
                r"true_fn returned float32 \(3,\), false_fn returned \(float32 \(3,\), float32 \(3,\)\)",
            ),
            (lambda x: x[:2], r"false_fn returned float32 \(2,\)"),
            (lambda x: x.astype("float64"), r"false_fn returned float64 \(3,\)"),
            (lambda x: 3, "false_fn returned 3"),
        ],
        ids=lambda _: "",
    )
    def test_branches_that_differ(self, other, text):
        with pytest.raises(TypeError, match=rf"mt\.cond: true_fn and false_fn must return the same .*{text}"):
            mt.jit(lambda x: mt.cond(x.sum() > 0, lambda x: x, other, x))(POSITIVE)

    @pytest.mark.parametrize("wrap", [lambda f: f, mt.jit], ids=["eager", "jit"])
    @pytest.mark.parametrize(
        ("call", "error", "text"),
        [
            (
                lambda x: mt.cond(x > 0, lambda: x, lambda: x),
                TypeError,
                r"pred must be a bool tensor of shape \(\), got bool \(3,\)",
            ),
            (lambda x: mt.cond(x.sum(), lambda: x, lambda: x), TypeError, r"pred must be .* got float32 \(\); compare"),
            (lambda x: mt.cond(1, lambda: x, lambda: x), TypeError, "pred must be a bool or a bool tensor .* got int"),
            (lambda x: mt.cond(True, x, lambda: x), TypeError, "mt.cond: true_fn must be a function, got Tensor"),
            (
                lambda x: mt.cond(x.sum() > 0, lambda: np.ones(3), lambda: x),
                TypeError,
                "mt.cond: true_fn returned a ndarray",
            ),
            (lambda x: mt.cond(x.sum() > 0, broken, lambda x: x, x), KeyError, "mine"),
            (lambda x: mt.while_loop(lambda x: x.sum(), lambda x: x, x), TypeError, "the result of cond_fun must be"),
            (
                lambda x: mt.while_loop(lambda x: x.sum() < 9, lambda x: (x, x), x),
                TypeError,
                r"expected float32 \(3,\), got \(",
            ),
            (lambda x: mt.while_loop(lambda x: x < 9, lambda x: x, 0), TypeError, "init must contain a tensor, got 0"),
            (lambda x: mt.while_loop(lambda x: x.sum() < 9, broken, x), KeyError, "mine"),
            (
                lambda x: mt.while_loop(lambda x: x.sum() < 9, None, x),
                TypeError,
                "body_fun must be a function, got NoneType",
            ),
            (lambda x: mt.scan(lambda c, x: c, x, x), TypeError, r"f must return a pair \(carry, y\), got float32"),
            (
                lambda x: mt.scan(lambda c, x: (c.sum(), x), x, x),
                TypeError,
                r"carry .* expected float32 \(3,\), got float32 \(\)",
            ),
            (lambda x: mt.scan(lambda c, x: (c + 1, x), 0, x), TypeError, "expected 0, got 1"),
            (lambda x: mt.scan(lambda c, x: (c, x), x), ValueError, "expected a tensor in xs, or length"),
            (lambda x: mt.scan(lambda c, x: (c, x), x, x.sum()), ValueError, "must have an axis to go along"),
            (
                lambda x: mt.scan(lambda c, x: (c, x), x, x, 4),
                ValueError,
                "length is 4, but the tensors in xs have size 3",
            ),
            (
                lambda x: mt.scan(lambda c, x: (c, x), x, None, -1),
                ValueError,
                "length must be an integer of at least 0, got -1",
            ),
            (
                lambda x: mt.scan(lambda c, x: (c, x), x, (x, x[:2])),
                ValueError,
                r"same size along axis 0, got \[2, 3\]",
            ),
            (lambda x: mt.scan(broken, x, x), TypeError, "positional argument"),
            (lambda x: mt.scan(lambda c, x: (c, np.ones(2)), x, x), TypeError, "mt.scan: f returned a ndarray"),
            (
                lambda x: mt.scan(lambda c, x: (c, x), x, np.ones(3)),
                TypeError,
                r"mt.scan: an argument is of type numpy.ndarray",
            ),
        ],
        ids=lambda _: "",
    )
    def test_bad_input(self, wrap, call, error, text):
        with pytest.raises(error, match=text):
            wrap(call)(POSITIVE)
        # The recording has ended.
        assert mt.jit(lambda x: x + 1)(mt.ones(1)).item() == 2

    @pytest.mark.parametrize("is_first", [True, False])
    @pytest.mark.parametrize(
        ("make", "text"),
        [
            (
                lambda h, s: lambda x: (x.__iadd__(1), x * 2)[1],
                "mt.cond: .* changes an operand or a captured tensor in place",
            ),
            (lambda h, s: lambda x: (h.__setitem__(0, 1), x)[1], "changes an operand or a captured tensor in place"),
            (lambda h, s: lambda x: (s["t"].__iadd__(1), x)[1], "changes an operand or a captured tensor in place"),
            (lambda h, s: lambda x: x + mt.rand(3), "draws random numbers"),
            (lambda h, s: lambda x: mt.ops.dropout(x), "draws random numbers"),
            (lambda h, s: lambda x: x * x.sum().item(), "reads the elements of a tensor"),
            (lambda h, s: lambda x: x if x.sum() > 0 else -x, "reads the elements of a tensor"),
            (lambda h, s: lambda x: (s["log"].append(x), x)[1], "changes Python state"),
            (lambda h, s: lambda x: (s.update(n=s["n"] + 1), x)[1], "changes Python state"),
            (lambda h, s: lambda x: ((x * s["w"]).sum().backward(), x)[1], "reads the accumulated|calls backward"),
            (lambda h, s: lambda x: x * s["w"].grad, "reads the accumulated gradient"),
            (lambda h, s: lambda x: x * s["deep"][0][0][0][0][0][0], "because an object refers to it"),
        ],
        ids=lambda _: "",
    )
    def test_what_the_graph_of_a_branch_cannot_repeat(self, make, text, is_first):
        state = {
            "t": mt.ones(3),
            "log": [],
            "n": 0,
            "w": mt.ones(3, requires_grad=True),
            "deep": [[[[[[mt.ones(3)]]]]]],
        }
        state["w"].grad = mt.ones(3)

        def f(x):
            h = x * 2
            functions = [make(h, state), lambda x: x * 1]
            return mt.cond(x.sum() > 0, *(functions if is_first else functions[::-1]), x)

        with pytest.raises(RuntimeError, match=text):
            mt.jit(f)(POSITIVE)

    def test_assigning_a_variable_outside(self):
        def f(x):
            h = x * 1.0
            h = (h + x).detach() if not x.requires_grad else h

            def first():
                nonlocal h
                h = h * 2
                return h

            return mt.cond(x.sum() > 0, first, lambda: h * 1), h

        for x in (POSITIVE, POSITIVE.detach().requires_grad_()):
            with pytest.raises(RuntimeError, match="changes Python state|changes a variable"):
                mt.jit(f)(x)

    def test_changing_a_list_outside(self):
        def f(x):
            hs = [x * 1]

            def first():
                hs.append(hs[0] * 2)
                return hs[-1]

            return mt.cond(x.sum() > 0, first, lambda: hs[0] * 1)

        for x in (POSITIVE, POSITIVE.detach().requires_grad_()):
            with pytest.raises(RuntimeError, match="changes Python state|changes a variable"):
                mt.jit(f)(x)

    def test_an_error_of_a_branch_that_is_not_chosen(self):
        with pytest.raises(KeyError, match="mine") as raised:
            mt.jit(lambda x: mt.cond(x.sum() > 0, lambda x: x, broken, x))(POSITIVE)
        assert raised.value.__notes__ == [
            "mt.cond: false_fn runs while mt.jit records, even if no run of the graph needs it."
        ]

    def test_a_condition_that_is_known(self):
        with pytest.raises(TypeError, match="cond_fun must return a bool tensor .* under mt.jit, got True"):
            mt.jit(lambda x: mt.while_loop(lambda x: True, lambda x: x, x))(POSITIVE)

    def test_random_numbers_in_an_op_in_python(self):
        @mt.custom_op(name="control_test::noisy", backward=lambda ctx, grad: grad * ctx.outputs[0])
        def noisy(x):
            return x * mt.rand(3)

        try:
            with pytest.raises(RuntimeError, match="draws random numbers"):
                mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: noisy(x), lambda: x * 1))(POSITIVE)
        finally:
            mt.unregister_custom_op_py("control_test::noisy")

    def test_random_numbers_with_a_key_are_not_refused(self):
        key = mt.Tensor([1, 2], dtype="uint64")
        assert_same(
            lambda x: mt.cond(x[0] > 0, lambda: mt.ops.random.normal(key, (3,)), lambda: x), (POSITIVE,), (NEGATIVE,)
        )

    def test_a_tensor_that_leaves_a_branch(self):
        class Box:
            __slots__ = ("value",)

        box = Box()

        def first(x):
            box.value = x * 2
            return x

        def f(x):
            mt.cond(x.sum() > 0, first, lambda x: x * 1, x)
            return box.value + 1

        with pytest.raises(RuntimeError, match="created inside of another call"):
            mt.jit(f)(POSITIVE)

    def test_a_history_that_is_hidden(self):
        class Box:
            __slots__ = ("value",)

        box = Box()
        w = mt.ones(3, requires_grad=True)

        def f(x):
            box.value = x * w
            return mt.cond(x.sum() > 0, lambda x: x * box.value, lambda x: x * 1, x)

        with pytest.raises(RuntimeError, match="pass the tensor as an operand"):
            mt.jit(f)(POSITIVE)

    def test_changing_a_list_that_is_an_operand(self):
        with pytest.raises(RuntimeError, match="changes a list or dict"):
            mt.jit(lambda x: mt.cond(x.sum() > 0, lambda v: v.pop(), lambda v: v[0] * 1, [x, x]))(POSITIVE)

    def test_a_branch_that_steps_an_optimizer(self):
        model = mt.nn.Linear(3, 3)
        optimizer = mt.optim.SGD(model.parameters(), lr=0.1)

        def first(x):
            optimizer.step()
            return x

        for p in model.parameters():
            p.grad = mt.ones_like(p)
        with pytest.raises(RuntimeError, match="mt.cond: true_fn"):
            mt.jit(lambda x: mt.cond(x.sum() > 0, first, lambda x: x * 1, x))(POSITIVE)


class TestLife:
    def test_nothing_remains(self):
        def f(x):
            h = x * 2
            return mt.scan(lambda c, x: (mt.cond(x.sum() > 0, lambda: c * h, lambda: c - x), c), x, mt.ones((5, 1000)))

        # The first graph with control flow adds the namespace of its ops.
        mt.jit(f)(mt.ones(1000, requires_grad=True))
        before = mt.list_custom_ops_py()
        names = dir(mt.ops)
        gc.collect()
        allocated = mt.memory_stats()["allocated"]

        jitted = mt.jit(f)
        x = mt.ones(1000, requires_grad=True)
        for _ in range(3):
            sum(t.sum() for t in jitted(x)).backward()
        assert mt.list_custom_ops_py() == before and dir(mt.ops) == names
        del jitted, x, f
        gc.collect()
        assert mt.memory_stats()["allocated"] <= allocated

    def test_threads(self):
        def f(x):
            return mt.cond(
                x.sum() > 0, lambda x: mt.scan(lambda c, _: (c * 1.1, None), x, length=3)[0], lambda x: -x, x
            )

        wrong = []

        def work(k):
            jitted = mt.jit(f)
            for i in range(10):
                x = mt.full((3,), float(k + i - 5))
                if not np.allclose(jitted(x).numpy(), f(x).numpy()):
                    wrong.append((k, i))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not wrong

    def test_memory_that_outlives_the_recording(self):
        class Cell:
            def __init__(self):
                self.h = mt.zeros(3)

            def __call__(self, x):
                self.h = mt.cond(x.sum() > 0, lambda h: h + x, lambda h: h - x, self.h)
                return self.h * 1

        eager, cell = Cell(), Cell()
        jitted = mt.jit(cell)
        for i in range(5):
            x = POSITIVE if i % 2 else NEGATIVE
            assert jitted(x).tolist() == eager(x).tolist()


def random_program(seed, w):
    """A function of two tensors of shape (3,), with nested control flow that uses values around it."""
    rng = random.Random(seed)

    def body(depth, size):
        steps = []
        for _ in range(size):
            kind = rng.choice(["unary", "binary", "w", "cond", "scan"] if depth else ["unary", "binary", "w"])
            inner = [body(depth - 1, 3) for _ in range(2)] if kind in ("cond", "scan") else []
            steps.append((kind, rng.choice(["tanh", "sin", "sigmoid"]), [rng.random() for _ in range(4)], inner))

        def f(*values):
            values = list(values)
            for kind, unary, where, inner in steps:
                # The functions below refer to these, and to the list.
                a, b, c, d = (values[int(k * len(values))] for k in where)
                match kind:
                    case "unary":
                        y = getattr(mt.ops, unary)(a)
                    case "binary":
                        y = a * b - c
                    case "w":
                        y = w * a + b
                    case "cond":
                        first, second = inner
                        known = values[-2:]
                        y = mt.cond(
                            a.sum() > b.sum(),
                            lambda d, first=first, b=b, c=c: first(b, c, d),
                            lambda d, second=second, a=a, known=known: second(a, *known, d),
                            d,
                        )
                    case _:
                        step, last = inner

                        def g(carry, x, a=a, step=step, last=last):
                            carry = step(carry, a) * x
                            return carry, last(carry, a)

                        carry, ys = mt.scan(g, b, mt.ops.stack([c, d])[:, :1], reverse=where[0] > 0.5)
                        y = carry + ys.sum(axis=0)
                values.append(mt.ops.clamp(y, -2, 2))
            return values[-1] + values[-2]

        return f

    return body(2, 6)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_agree(seed):
    w = mt.Tensor([0.5, -1.0, 2.0], requires_grad=True)
    f = random_program(seed, w)
    x, y = POSITIVE * 0.3, NEGATIVE * 0.2

    def through(f, *args):
        w.grad = None
        leaves = [t.detach().requires_grad_() for t in args]
        z = f(*leaves)
        found = mt.grad((z * z).sum(), [*leaves, w], allow_unused=True)
        return [z, *(mt.zeros(3) if g is None else g for g in found)]

    jitted = mt.jit(f)
    inside = mt.jit(lambda *args: through(f, *args))
    for args in ((x, y), (y, x), (x * y, y), (x, y), (x * 3, y * -2), (y, x)):
        expected = arrays(through(f, *args))
        for got in (through(jitted, *args), inside(*args)):
            for a, b in zip(arrays(got), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    assert len(jitted.graphs) == len(inside.graphs) == 1
