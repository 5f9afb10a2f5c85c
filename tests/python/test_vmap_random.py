"""Random functions under `mt.vmap`, and their recordings."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from vmap_checks import SIZE, assert_close, assert_same, looped, randn

import minitensor as mt


def inner_gradient(t, other, w):
    """A gradient that the function computes."""
    leaf = t.detach().requires_grad_()
    return mt.grad(((leaf * leaf).tanh() * w + leaf @ leaf).sum() * other.detach().mean(), leaf)[0]


#: Functions of a tensor of shape (4, 4), another tensor of any shape, a shared tensor, and a number.
STEPS = [
    lambda t, o, w, k: t.T,
    lambda t, o, w, k: t[1:3],
    lambda t, o, w, k: t[::-1, k % 4],
    lambda t, o, w, k: t * o.sum().tanh(),
    lambda t, o, w, k: t.reshape(2, 8).sum(axis=1),
    lambda t, o, w, k: t @ w,
    lambda t, o, w, k: mt.ops.softmax(t, axis=k % 2),
    lambda t, o, w, k: mt.ops.concat([t, w[:1]], axis=0)[1:],
    lambda t, o, w, k: mt.ops.sort(t, axis=k % 2)[0],
    lambda t, o, w, k: mt.ops.cumsum(t, axis=k % 2),
    lambda t, o, w, k: mt.ops.where(t > 0, t, o.sum()),
    lambda t, o, w, k: t.detach() * t,
    lambda t, o, w, k: mt.ops.pad(t, [1, 0, 0, 1])[:4, :4],
    lambda t, o, w, k: t[mt.Tensor([k % 4, (k // 3) % 4, 0, -1])],
    lambda t, o, w, k: mt.ops.var(t, axis=k % 2).unsqueeze(0) * t,
    lambda t, o, w, k: mt.ops.max(t, axis=0) + mt.ops.prod(t, axis=1),
    lambda t, o, w, k: mt.ops.gather(t, mt.Tensor([[k % 4]] * 4), axis=-1) + t,
    lambda t, o, w, k: mt.ops.layer_norm(t, w[0], w[1]),
    lambda t, o, w, k: mt.ops.roll(t, k % 3, axis=k % 2),
    lambda t, o, w, k: inner_gradient(t, o, w),
]


def change(which, t, o, k):
    """Changes a tensor of shape (4, 4) in place."""
    if which == 0:
        t[k % 4] = o.reshape(-1)[:1] * 0.5
    elif which == 1:
        t *= 0.5
    elif which == 2:
        t.T[1:, 0] += o.reshape(-1)[:1]
    else:
        buffer = mt.zeros(4, 4, dtype="float64")
        buffer[k % 3 :] += t[k % 3 :]
        t[:2] = buffer[2:]


def random_function(seed):
    """A function of two tensors, and the tensor that all examples share."""
    rng = np.random.default_rng(seed)
    steps = rng.integers(0, len(STEPS) + 4, size=rng.integers(3, 12)).tolist()
    choice = rng.integers(0, 10000, size=len(steps)).tolist()
    w = randn(4, 4, seed=seed, requires_grad=bool(seed % 2))

    def f(x, y):
        own = [x * 1.0, y * 1.0]
        for step, k in zip(steps, choice, strict=True):
            t, o = own[k % len(own)], own[(k // 7) % len(own)]
            if t.shape != (4, 4):
                t = (mt.ops.expand(t.reshape(-1)[:1], [4, 4]) * w).clone()
            if step < len(STEPS):
                own.append(STEPS[step](t, o, w, k))
            else:
                change(step - len(STEPS), t, o, k)
        return tuple(own)

    return f, w


@pytest.mark.parametrize("seed", range(80))
def test_are_the_loop(seed):
    f, w = random_function(seed)
    x, y = randn(SIZE, 4, 4, seed=seed), randn(SIZE, 4, 4, seed=seed + 1)
    assert_same(f, x, y)
    assert_same(f, x, y[0], in_axes=(0, None))
    assert_same(f, x.T, mt.ops.moveaxis(y, 0, 1), in_axes=(2, 1))
    assert_close(mt.jit(mt.vmap(f))(x, y), looped(f, x, y))
    assert_close(
        mt.vmap(mt.vmap(f))(*(t.reshape(SIZE, 1, 4, 4) for t in (x, y))),
        tuple(t.unsqueeze(1) for t in looped(f, x, y)),
    )


@pytest.mark.parametrize("seed", range(80))
def test_have_the_second_derivatives_of_the_loop(seed):
    f, w = random_function(seed)

    def derivatives(run):
        leaves = [randn(SIZE, 4, 4, seed=seed + k, requires_grad=True) for k in (0, 1)]
        results = [t for t in run(f, *leaves) if t.requires_grad]
        leaves += [w] if w.requires_grad else []
        first = mt.grad(sum(t.sin().sum() for t in results), leaves, create_graph=True, allow_unused=True)
        again = [g for g in first if g is not None and g.requires_grad]
        second = mt.grad(sum((g * g).sum() for g in again), leaves, allow_unused=True) if again else ()
        return [mt.zeros(1) if g is None else g for g in (*first, *second)]

    try:
        expected = derivatives(looped)
    except RuntimeError as error:
        assert "in place" in str(error)
        return
    for a, b in zip(derivatives(lambda f, *args: mt.vmap(f)(*args)), expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6, atol=1e-8)


def test_a_function_that_applies_a_batch():
    def f(x, y):
        z = x * 2
        first = mt.vmap(lambda row: row * z[0] + z.sum())(y)
        z[0] = 7
        return first + mt.vmap(lambda row: row * z[0])(y)

    x, y = randn(2, 3, 4), randn(2, 3, 4, seed=1)
    assert_same(f, x, y)
    jitted = mt.jit(f)
    for k in range(3):
        assert_close(jitted(x[0] + k, y[0]), f(x[0] + k, y[0]))
    assert len(jitted.graphs) == 1


def test_an_op_in_python_that_applies_a_batch():
    @mt.custom_op
    def vmap_test_norms(x):
        return mt.vmap(lambda row: (row * row).sum())(x)

    try:
        jitted = mt.jit(lambda x: mt.ops.vmap_test_norms(x) * 2)
        for x in (randn(3, 4), randn(3, 4) + 1):
            assert_close(jitted(x), (x * x).sum(axis=1) * 2)
        assert_same(lambda x: mt.ops.vmap_test_norms(x), randn(2, 3, 4))
    finally:
        mt.unregister_custom_op_py("vmap_test_norms")


def test_threads():
    def work(first):
        for seed in range(first, first + 10):
            f, _ = random_function(seed)
            x, y = randn(SIZE, 4, 4, seed=seed), randn(SIZE, 4, 4, seed=seed + 1)
            assert_close(mt.vmap(f)(x, y), looped(f, x, y))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(0, 40, 10)))
