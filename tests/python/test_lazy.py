"""`mt.lazy`: calls are computed when their results are read, with the same bits as without it."""

import gc
import pickle

import numpy as np
import pytest
from lazy_results import assert_same, computed, randn

import minitensor as mt


def check(function, *args):
    """The results of a function in lazy mode are those without it."""
    expected = function(*args)
    with mt.lazy():
        got = function(*args)
    assert_same(got, expected)


def test_a_chain_runs_as_one_call_when_it_is_read():
    x, y = randn(3, 4), randn(4)
    expected = ((x * 2 + y).tanh(), (x * 2 + y).tanh() * (x * 2 + y).tanh().sigmoid() - 1)
    with mt.profiler.profile() as p:
        with mt.lazy():
            z = (x * 2 + y).tanh()
            w = z * z.sigmoid() - 1
        assert (w.shape, w.dtype, w.device, w.requires_grad) == ((3, 4), mt.float32, "cpu", False)
        assert (w.strides, w.is_contiguous()) == ((4, 1), True)
    assert p.events() == []
    assert computed(lambda: repr(w)) == ["fused(multiply, add, tanh, sigmoid, multiply, subtract)"]
    assert computed(lambda: repr(z)) == []
    assert_same([z, w], expected)


def test_a_result_that_is_dropped_is_not_computed():
    x = randn(1 << 18)
    with mt.lazy():
        kept, dropped = x + 1, (x * 2).exp().cumsum(0)
        del dropped
    mt.reset_peak_memory_stats()
    before = mt.memory_stats()["allocated"]
    assert computed(kept.data_ptr) == ["add"]
    assert mt.memory_stats()["peak"] - before < 1.5 * x.nbytes


READS = {
    "repr": repr,
    "str": str,
    "item": lambda t: t.item(),
    "tolist": lambda t: t.tolist(),
    "bool": bool,
    "float": float,
    "int": int,
    "numpy": lambda t: t.numpy(),
    "asarray": np.asarray,
    "dlpack": np.from_dlpack,
    "buffer": lambda t: memoryview(t).tolist(),
    "pickle": lambda t: pickle.loads(pickle.dumps(t)),
    "pointer": lambda t: t.data_ptr(),
    "op": lambda t: t + 1,
    "comparison": lambda t: t > 0,
    "branch": lambda t: 1 if t else 0,
}


@pytest.mark.parametrize("read", READS)
def test_a_read_computes(read):
    x = mt.Tensor([3.0])
    with mt.lazy():
        y = x.exp()
    assert "exp" in computed(lambda: READS[read](y))
    assert y.item() == x.exp().item()


def test_views_and_shapes_do_not_compute():
    x = randn(4, 6)
    with mt.lazy():
        y = x * 2
    assert "multiply" not in computed(
        lambda: (y.T, y[1], y[:, ::2], y.reshape(3, 8), len(y), y.nbytes, y.ndim, y.detach())
    )


def f_views(x):
    y = x * 3
    return y.T, y[1:3, ::2], y.reshape(-1)[5:], y.T.reshape(-1), y[None].squeeze(0), y.T.contiguous(), y.T.clone() * 2


def f_in_place(x):
    y = x + 1
    z = y.T
    before = y * 10
    z[0] = 5.0
    y += z.sum()
    y[1:].multiply_(2)
    w = z * 1
    y[...] = 0.5
    return y, z, before, w


def f_in_place_on_given(x):
    x = x.clone()
    before = x.sum(0)
    x += 1
    x[0] = before
    return x, before, x.T * 2


def f_halves(x):
    h = x.astype("float16")
    return h.softmax(-1), (h * 1.1 + 1).sum(), mt.ops.layer_norm(h), h.astype("bfloat16").mean()


def f_integers(x):
    k = (x * 10).astype("int64")
    return k // 3, k % 4 + 2, k > 2.5, k.sum(0), mt.ops.where(k > 0, k, -k), k / 2, k.argmax(1)


def f_elements_decide(x):
    mask = x > 0.5
    found = mt.ops.nonzero(mask), mt.ops.nonzero(mask, size=9), *mt.ops.unique_all(x), *mt.ops.unique_all(x, size=9)
    return x[x > 0], *found, mt.ops.take(x.reshape(-1), mt.Tensor([0, 3])), *mt.ops.sort(x, axis=1)


def f_joins(x):
    y = x * 2
    return mt.ops.concat([x, y, x]), mt.ops.stack([y, x]), mt.ops.pad(y, [1, 1, 0, 2]), mt.ops.flip(y), y @ y.T


def f_reductions(x):
    y = x.exp()
    return y.sum(), y.mean(0), y.max(1), y.cumsum(0), y.softmax(0), y.var(1), mt.ops.logsumexp(y, axis=1), y.T.sum(1)


def f_random(x):
    mt.manual_seed(3)
    noise = mt.randn(4, 6)
    return x + noise, mt.rand(5) * 2, mt.ops.dropout(x * 1, 0.5)


def f_empty(x):
    y = x[:0] * 2
    return y, y.sum(), y.reshape(2, 0), mt.zeros(0, 3) + y[:, :3]


FUNCTIONS = [f for name, f in sorted(globals().items()) if name.startswith("f_")]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_results_are_those_of_immediate_calls(function):
    check(function, randn(4, 6))
    check(function, randn(6, 4).T)


@pytest.mark.parametrize("layout", [lambda t: t, lambda t: t.T, lambda t: t[::2], lambda t: t[:, ::-1]])
def test_layouts_are_those_of_immediate_calls(layout):
    x = layout(randn(8, 8))
    check(lambda t: ((t * 2).sum(1), t + 1, t.clone(), t.T @ t, t.sum(0), t.softmax(0)), x)


def test_arithmetic_agrees_with_numpy():
    a, b = np.float32([1.5, -2, 3]), np.float32([0.5, 4, -1])
    with mt.lazy():
        x, y = mt.Tensor(a), mt.Tensor(b)
        z = (x * y - x / y).abs() ** 2 + 1
    np.testing.assert_allclose(z.numpy(), np.abs(a * b - a / b) ** 2 + 1, rtol=1e-6)


def gradients(x):
    w = mt.Tensor(np.linspace(-1, 1, 6, dtype="float32"), requires_grad=True)
    v = x.detach().requires_grad_()
    loss = ((v * w).tanh() @ (v * w).T.sigmoid()).softmax(-1).square().sum()
    (g,) = mt.grad(loss, [w], create_graph=True)
    (g.square().sum() + loss).backward()
    return loss, g, w.grad, v.grad


def test_gradients_are_those_of_immediate_calls():
    check(gradients, randn(4, 6))


def test_gradients_are_not_computed_before_they_are_read():
    w = randn(5, requires_grad=True)
    with mt.profiler.profile() as p, mt.lazy():
        ((w * 2).exp().sum()).backward()
        assert w.grad.shape == (5,)
    assert p.events() == []
    assert_same([w.grad], [(w.detach() * 2).exp() * 2])


def test_in_place_changes_flow_through_gradients():
    def function(x):
        v = x.detach().requires_grad_()
        y = v * 2
        y[0] = y[1] * 3
        y += v
        y.T[2].multiply_(v[:, 2])
        y.square().sum().backward()
        return y, v.grad

    check(function, randn(4, 6))


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW"])
def test_training_is_that_of_immediate_calls(optimizer):
    def train(lazy):
        mt.manual_seed(0)
        model = mt.nn.Sequential(mt.nn.Linear(4, 16), mt.nn.Function(mt.ops.gelu), mt.nn.Linear(16, 1))
        steps = getattr(mt.optim, optimizer)(model.parameters(), lr=1e-2)
        x, y = mt.randn(32, 4), mt.randn(32, 1)
        losses = []
        for _ in range(8):
            with mt.lazy() if lazy else mt.enable_grad():
                loss = ((model(x) - y) ** 2).mean()
                steps.zero_grad()
                loss.backward()
                steps.step()
            losses.append(loss.detach())
        return losses + [p.detach() for p in model.parameters()]

    assert_same(train(True), train(False))


def test_a_change_outside_of_lazy_mode_comes_after_the_reads_before_it():
    x = randn(5)
    with mt.lazy():
        y = x * 2
    expected = (x.clone() * 2).tolist()
    x += 100
    assert y.tolist() == expected


def test_a_change_in_lazy_mode_comes_before_the_reads_after_it():
    x = mt.Tensor([1.0, 2.0])
    with mt.lazy():
        x += 1
    assert x.tolist() == [2.0, 3.0]


def test_memory_of_numpy_is_read_at_the_call():
    a = np.ones(3, dtype="float32")
    x = mt.from_numpy(a)
    with mt.lazy():
        y = x + 1
        a[:] = 5
        z = x + 1
        x *= 2
        assert a.tolist() == [10, 10, 10]
    assert (y.tolist(), z.tolist()) == ([2, 2, 2], [6, 6, 6])
    shown = y.numpy()
    with mt.lazy():
        w = y * 3
        shown[:] = 0
        y += 7
        assert shown.tolist() == [7, 7, 7]
    assert w.tolist() == [6, 6, 6]


def test_blocks_nest_and_decorate():
    x = mt.Tensor([1.0])

    @mt.lazy()
    def double(t):
        return t * 2

    with mt.profiler.profile() as p:
        with mt.lazy():
            with mt.lazy():
                y = x + 1
            z = y + 1
        w = double(z)
    assert p.events() == []
    assert computed(lambda: mt.ones(1) + 1) == ["add"]
    assert w.item() == 6


def test_a_read_within_the_block_computes():
    x = mt.Tensor([1.0, 2.0])
    with mt.lazy():
        y = x * 2
        if y.sum() > 5:
            y = y - 1
    assert y.tolist() == [1, 3]


def test_with_jit():
    f = mt.jit(lambda t: (t * 2 + 1).tanh())
    x = randn(7)
    expected = f(x)
    with mt.profiler.profile() as p, mt.lazy():
        got = f(x * 1)
    assert p.events() == []
    assert_same([got], [expected])

    @mt.jit
    def g(t):
        with mt.lazy():
            return t.exp() * 2

    assert_same([g(x), g(x)], [x.exp() * 2] * 2)
    assert g.graphs[0].ops == ["fused(exp, multiply)"]
    with mt.lazy():
        got = mt.jit(lambda t: t.exp() * 2)(x + 0)
    assert_same([got], [x.exp() * 2])


def test_with_vmap_and_control_flow():
    def function(x):
        rows = mt.vmap(lambda row: (row * 2).sum() + row.max())(x * 1)
        last, _ = mt.scan(lambda h, r: ((h + r).tanh(), None), mt.zeros(6), x * 2)
        return rows, last, mt.cond(last.sum() > 0, lambda: last * 2, lambda: -last)

    check(function, randn(4, 6))


def test_effects_of_nested_functions_come_in_the_order_of_the_calls():
    def function(x):
        mt.manual_seed(7)
        w = mt.ones(6, requires_grad=True)
        state = mt.zeros(6)

        @mt.jit
        def step(row):
            noise = mt.randn(6)
            (w * (row + noise)).sum().backward()
            with mt.no_grad():
                state.add_(row * noise)
            return noise * 2

        def body(carry, row):
            return carry * 0.5 + row * state, None

        results = [step(x[0]), state * 1]
        state[0] = 4.0
        results.append(mt.cond(state.sum() > 0, lambda: state * 2, lambda: -state))
        state.multiply_(mt.rand(6))
        results += [step(x[1]), mt.scan(body, state, x)[0]]
        w.grad.multiply_(2)
        (w * state).sum().backward()
        return [*results, state, w.grad, mt.rand(3)]

    check(function, randn(4, 6))


def test_ops_in_python_get_computed_tensors(registered):
    seen = []

    @mt.custom_op(name="lazy_test::plus_count")
    def plus_count(x: mt.Tensor) -> mt.Tensor:
        seen.append(x.numpy().copy())
        return x + len(seen)

    x = randn(3)
    with mt.lazy():
        y = plus_count(x * 2) * 2
    assert len(seen) == 1
    assert seen[0].tolist() == (x * 2).tolist()
    assert_same([y], [(x * 2 + 1) * 2])


def test_a_loop_has_bounded_memory():
    x = mt.ones(1 << 12)
    with mt.lazy():
        for _ in range(3):
            y = x
            for _ in range(20_000):
                y = y * 0.999
    gc.collect()
    mt.reset_peak_memory_stats()
    before = mt.memory_stats()["allocated"]
    expected = mt.ones(1 << 12)
    for _ in range(20_000):
        expected = expected * 0.999
    with mt.lazy():
        y = x
        for _ in range(20_000):
            y = y * 0.999
    assert_same([y], [expected])
    assert mt.memory_stats()["peak"] - before < 64 * x.nbytes


def test_a_variable_that_is_overwritten_keeps_nothing_alive_and_is_not_copied():
    x = randn(1 << 16)
    with mt.lazy():
        fused, scanned, changed = x, x, x.clone()
        for _ in range(50):
            fused = fused + 1
            scanned = scanned.cumsum(0) * 1e-3
            changed += 1
    mt.reset_peak_memory_stats()
    before = mt.memory_stats()["allocated"]
    addresses = {t.data_ptr() for t in (fused, scanned, changed)}
    assert len(addresses) == 3
    # Three results, and the memory of one call.
    assert mt.memory_stats()["peak"] - before < 4.5 * x.nbytes
    assert mt.memory_stats()["allocated"] - before < 3.5 * x.nbytes


def test_inputs_that_nothing_else_refers_to_are_bounded():
    total = mt.zeros(())
    mt.reset_peak_memory_stats()
    before = mt.memory_stats()["allocated"]
    with mt.lazy():
        for k in range(40):
            total = total + mt.full((1 << 24,), float(k)).max()
    assert total.item() == sum(range(40))
    assert mt.memory_stats()["peak"] - before < 1.5 * (1 << 30)


def test_numbers_that_change_do_not_compile_again():
    x = randn(64)
    with mt.lazy():
        results = []
        for k in range(200):
            y = (x * float(k) + 0.5).tanh()
            results.append(y.sum().item())
    assert results == [((x * float(k) + 0.5).tanh()).sum().item() for k in range(200)]


def program(seed):
    """A random function of two tensors, with views, changes in place and gradients."""
    rng = np.random.default_rng(seed)
    steps = rng.integers(0, 14, size=12)
    picks = rng.integers(0, 1 << 30, size=(12, 3))

    def run(x, y):
        leaf = y.detach().requires_grad_()
        live = [x.clone(), leaf * 1, x * 0.5]
        for step, (i, j, k) in zip(steps, picks, strict=True):
            a, b = live[i % len(live)], live[j % len(live)]
            if step == 0:
                live.append(a + b)
            elif step == 1:
                live.append((a * b).tanh() - 0.25)
            elif step == 2:
                live.append(a.T.exp().clip(hi=2.0))
            elif step == 3:
                live.append((a @ b) / 4)
            elif step == 4:
                a += 0.5
            elif step == 5:
                a[k % 4] = b[j % 4].detach()
            elif step == 6:
                a.T[k % 4].multiply_(0.5)
            elif step == 7:
                live.append(a.softmax(k % 2))
            elif step == 8:
                live.append(mt.ops.concat([a[:2], b[2:]]))
            elif step == 9:
                live.append(a.sum(0) + b)
            elif step == 10:
                live[i % len(live)] = a.detach().clone()
            elif step == 11:
                live.append(mt.ops.where(a > b, a, b * 2))
            elif step == 12:
                live.append(a.reshape(2, 8).T.reshape(4, 4))
            elif step == 13 and k % 3 == 0:
                a.sum().item()
        total = sum((t.square().mean() for t in live), mt.zeros(()))
        results = [total, *live]
        if total.requires_grad:
            results += [g for g in mt.grad(total, [leaf], allow_unused=True) if g is not None]
        return results

    return run


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    run = program(seed)
    x, y = randn(4, 4, seed=seed), randn(4, 4, seed=seed + 1)
    try:
        expected = run(x, y)
    except RuntimeError as error:
        with mt.lazy(), pytest.raises(RuntimeError) as got:
            run(x, y)
        assert str(got.value) == str(error)
        return
    with mt.lazy():
        results = run(x, y)
    assert_same(results, expected)
    assert_same([x, y], [randn(4, 4, seed=seed), randn(4, 4, seed=seed + 1)])


def test_a_call_that_fails_on_another_thread_fails_alone():
    n = 1_000_000
    target = np.zeros(n, "int64")
    target[n // 2 + 5] = 7777
    for _ in range(3):
        with mt.lazy():
            wrong = mt.cross_entropy(mt.ones(n, 16), mt.asarray(target))
            other = mt.ones(3) * 5.0
        with pytest.raises(IndexError, match="op 'cross_entropy': 'target' contains position 7777"):
            wrong.numpy()
        assert other.tolist() == [5.0] * 3
        with mt.lazy():
            later = mt.ones(4) * 2.0
        assert later.tolist() == [2.0] * 4
