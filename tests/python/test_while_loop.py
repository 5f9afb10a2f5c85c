"""`mt.while_loop`."""

import pytest
from control_flow_checks import NEGATIVE, POSITIVE, assert_same, count

import minitensor as mt


def test_each_run_makes_its_own_number_of_steps():
    def f(x):
        return mt.while_loop(lambda s: s[0] <= x, lambda s: (s[0] * 2, s[1] + 1), (mt.ones(()), mt.tensor(0)))

    jitted = assert_same(f, (mt.tensor(5.0),), (mt.tensor(1000.0),), (mt.tensor(0.0),))
    assert [t.item() for t in jitted(mt.tensor(1000.0))] == [1024, 10]
    assert count(jitted, "while_loop") == 1


def test_no_step():
    def f(x):
        y = mt.while_loop(lambda x: x.sum() > 100, lambda x: x * 0.5, x)
        y += 1
        return x * 1, y

    assert_same(f, (POSITIVE,), (POSITIVE * 50,), (NEGATIVE,))


def test_values_of_the_function_around_it():
    def f(x, limit):
        step = x.exp()
        end = limit * 2
        return mt.while_loop(lambda v: v.sum() < end, lambda v: v + step, x)

    assert_same(f, (POSITIVE, mt.tensor(100.0)), (NEGATIVE, mt.tensor(3.0)))


def test_loops_in_branches_and_branches_in_loops():
    def collatz(n):
        def step(s):
            n, k = s
            return mt.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), k + 1

        return mt.while_loop(lambda s: s[0] != 1, step, (n, mt.tensor(0)))[1]

    jitted = assert_same(collatz, *((mt.tensor(n),) for n in (1, 6, 27, 97)))
    assert jitted(mt.tensor(27)).item() == 111


def test_the_gradient_is_refused():
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


def test_gradients_flow_in_eager_mode():
    x = mt.tensor(1.5, requires_grad=True)
    mt.while_loop(lambda v: v < 10, lambda v: v * 2, x).backward()
    assert x.grad.item() == 8
