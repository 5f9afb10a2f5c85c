"""Functions under `mt.jit` whose ops are fused although they read memory that other calls change."""

from __future__ import annotations

import random

import numpy as np
import pytest

import minitensor as mt

UNARY = (mt.ops.tanh, mt.ops.sigmoid, mt.ops.negative, mt.ops.square)
BINARY = (mt.ops.add, mt.ops.multiply, mt.ops.subtract, mt.ops.maximum)


def program(seed, length=40):
    """Returns a random function that changes tensors in place: its own, and those in `state`."""
    rng = random.Random(seed)
    steps = [(rng.random(), *(rng.randrange(100) for _ in range(4))) for _ in range(length)]

    def run(x, state):
        values = [x, x * 2, state[0] + x]
        for kind, a, b, op, at in steps:
            u, v = values[a % len(values)], values[b % len(values)]
            if kind < 0.35:
                values.append(BINARY[op % 4](u, v))
            elif kind < 0.6:
                values.append(UNARY[op % 4](u))
            elif kind < 0.7:
                values.append(BINARY[op % 4](u, state[at % len(state)]))
            elif kind < 0.78:
                values.append(u.softmax(-1))
            elif kind < 0.86:
                state[at % len(state)] *= 0.5
            elif kind < 0.93:
                state[at % len(state)][0] = u[0]
            else:
                # A tensor that the function made itself.
                target = values[1 + a % (len(values) - 1)]
                if target.shape == x.shape:
                    target += 1
        return values[-6:]

    return run


@pytest.mark.parametrize("seed", range(60))
def test_results_and_state_are_those_of_eager_mode(seed):
    rng = np.random.default_rng(seed)
    run = program(seed)
    x = mt.Tensor(rng.standard_normal((4, 6)).astype(np.float32))
    states = [[mt.Tensor(rng.standard_normal((4, 6)).astype(np.float32))] for _ in range(2)]
    states = [[s.clone() for s in states[0] + states[1]] for _ in range(2)]
    jitted = mt.jit(lambda x: run(x, states[1]))
    with mt.no_grad():
        for _ in range(3):
            expected, got = run(x, states[0]), jitted(x)
            for a, b in zip(expected + states[0], got + states[1], strict=True):
                np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_ops_before_an_optimizer_step_are_fused():
    w, b = mt.randn((3, 5)).requires_grad_(), mt.randn(5).requires_grad_()
    optimizer = mt.optim.AdamW([w, b], 1e-3)

    @mt.jit
    def step(x):
        loss = mt.ops.relu(x @ w + b).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    x = mt.randn((4, 3))
    for _ in range(3):
        step(x)
    assert "fused(linalg::matrix_product, add, relu)" in step.graphs[-1].ops


def test_a_read_stays_before_the_change_that_follows_it():
    state = mt.ones(8)

    @mt.jit
    def f(x):
        before = x + state
        state.__imul__(2)
        return (before * 3).tanh(), (x + state) * 3

    with mt.no_grad():
        for n in range(3):
            first, second = f(mt.zeros(8))
            np.testing.assert_allclose(first.numpy(), np.tanh(3 * 2.0**n), rtol=1e-6)
            np.testing.assert_array_equal(second.numpy(), np.full(8, 3 * 2.0 ** (n + 1), np.float32))


def test_a_constant_that_the_function_changes_is_no_number():
    @mt.jit
    def f(x):
        ones = mt.ones(4)
        a = x * ones
        ones += x
        return a + 1, x * ones + 1

    x = mt.Tensor([1.0, 2.0, 3.0, 4.0])
    for _ in range(3):
        a, b = f(x)
        np.testing.assert_array_equal(a.numpy(), x.numpy() + 1)
        np.testing.assert_array_equal(b.numpy(), x.numpy() * (1 + x.numpy()) + 1)


def test_an_argument_with_a_history_can_be_changed_in_place_after_the_call():
    block, w = mt.jit(lambda h: (h * 2).tanh()), mt.ones(4, requires_grad=True)
    for _ in range(3):
        h = mt.ones(4) * w
        expected = (h + (h * 2).tanh()).tolist()
        h += block(h)
        assert h.tolist() == expected
