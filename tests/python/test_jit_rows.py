"""Rows in graphs: a row op is one call with the element ops before and after it, and gives the same bits."""

import random
from functools import partial

import numpy as np
import pytest

import minitensor as mt


def array(shape, dtype="float32", seed=0):
    return mt.Tensor(np.random.default_rng([seed, *shape]).standard_normal(shape)).astype(dtype)


def elements(t):
    """The elements as an array. NumPy has no bfloat16."""
    return np.asarray(t.detach().astype("float32") if t.dtype == mt.bfloat16 else t.detach())


def bits(values):
    return [elements(t).tobytes() for t in (values if isinstance(values, (list, tuple)) else [values])]


def assert_same(f, *args):
    """Returns the ops of the graph, which gives the bits of the function."""
    jitted = mt.jit(f)
    for _ in range(2):
        assert bits(jitted(*args)) == bits(f(*args))
    return jitted.graphs[0].ops


def values(result):
    """The elements of all tensors. The sign of a zero may differ in gradients."""
    return [(elements(t) + 0.0).tobytes() for t in result]


def mean(x):
    return x.mean()


def centered(x):
    y = x - x.mean()
    return y, x.mean(), (y * y).mean().sqrt()


def maxima(x):
    return x.max()


@pytest.fixture(scope="module", autouse=True)
def registered_here():
    """Makes these functions ops during the tests of this file."""
    functions = {name: globals()[name] for name in ("mean", "centered", "maxima")}
    for name, function in functions.items():
        axis = {"axis": -1} if name == "maxima" else {}
        globals()[name] = mt.row_op(name=f"test_jit_rows::{name}", **axis)(function)
    yield
    for name in functions:
        mt.unregister_custom_op_py(f"test_jit_rows::{name}")


def norm_block(x, bias, kept, residual, weight, shift):
    h = mt.where(kept, mt.ops.gelu(x + bias) / 0.9, 0) + residual
    return mt.ops.layer_norm(h, weight, shift)


def standardized(x):
    y, _, deviation = centered(x * 2)
    return y.tanh() / maxima(y * 3, keepdims=True), deviation * 2 + 1


DTYPES = ["float16", "bfloat16", "float32", "float64"]
SHAPES = [(2,), (7,), (1, 5), (4, 16), (16, 16), (3, 4, 33), (2, 1, 600), (5, 513), (3, 2100)]


class TestOneCall:
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize(
        "f",
        [
            lambda x: mt.ops.softmax(x * 2 + 1, axis=-1) * 3,
            lambda x: mean(x.exp() - 1) * 2 + 1,
            lambda x: x - maxima(x, keepdims=True),
            lambda x: maxima(x, keepdims=True) - 1,
            standardized,
            lambda x: (mt.ops.log_softmax(x * 2, axis=-1).exp(), *standardized(x), maxima(x * 2, keepdims=True) * 2),
        ],
    )
    def test_of_one_tensor(self, f, shape, dtype):
        assert len([op for op in assert_same(f, array(shape, dtype)) if op != "reshape"]) == 1

    @pytest.mark.parametrize("shape", SHAPES)
    def test_a_norm_with_what_comes_before_it(self, shape):
        n = shape[-1]
        rows = [array(shape, seed=k) for k in range(2)]
        shared = [array((n,), seed=k) for k in range(2, 5)]
        args = rows[0], shared[0], array(shape, seed=6) > -1, rows[1], shared[1], shared[2]
        assert assert_same(norm_block, *args) == ["fused(add, gelu, divide, where, add, layer_norm)"]

    def test_masks_and_numbers_of_rows_are_results(self):
        def f(x):
            m = maxima(x, keepdims=True) / 2
            return x > m, mt.where(x > m, x, m), m * 2

        ops = assert_same(f, array((6, 40)))
        assert len([op for op in ops if op.startswith("fused")]) == 1

    @pytest.mark.parametrize("shape", [(8, 1), (1,), (3, 8), (8,), (1, 8), (2, 3, 8), (2, 1, 1), ()])
    def test_other_tensors_broadcast(self, shape):
        def f(x, y):
            return (mt.ops.softmax(x + y, axis=-1) * y, mean(x * y))

        x = array((2, 3, 8))
        if shape in [(8, 1), (3, 8), (8,), (1, 8), (2, 3, 8), (1,), (2, 1, 1), ()]:
            y = array(shape) if shape != (8, 1) else array((3, 1))
            assert_same(f, x, y)

    def test_layouts(self):
        x = array((12, 10))
        for y in (x.T, x[::2], x[:, ::-1], x[:, 1:7], array((1, 10)).expand((5, 10)), x[0]):
            assert_same(lambda x: mt.ops.softmax(x * 2, axis=-1) + 1, y)


def own_softmax(x):
    e = (x - x.max(axis=-1, keepdims=True)).exp()
    return e / e.sum(axis=-1, keepdims=True)


def own_layer_norm(x):
    d = x - x.mean(axis=-1, keepdims=True)
    return d / ((d * d).mean(axis=-1, keepdims=True) + 1e-5).sqrt()


class TestReductions:
    """Sums, means and extrema along the last axis are rows, too. Views of their results cost nothing."""

    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("f", [own_softmax, own_layer_norm])
    def test_of_one_call(self, f, shape, dtype):
        assert len(assert_same(f, array(shape, dtype))) == 1

    @pytest.mark.parametrize("reduction", [mt.sum, mt.mean, mt.max, mt.min])
    @pytest.mark.parametrize("keepdims", [False, True])
    def test_each(self, reduction, keepdims):
        for n in (2, 3, 8, 31, 63, 64, 65, 511, 512, 513, 4100, 20000, 32768):
            x = array((3, n))
            ops = assert_same(lambda x: reduction(x * 2, axis=-1, keepdims=keepdims) + 1, x)
            assert len([op for op in ops if op != "reshape"]) == 1

    @pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0])
    def test_special_values(self, special):
        x = np.random.default_rng(0).standard_normal((4, 70)).astype("float32")
        x[0, 3], x[1, 69], x[2] = special, special, special
        for reduction in (mt.sum, mt.mean, mt.max, mt.min):
            f = mt.jit(lambda x, reduction=reduction: reduction(x * 1.5, axis=-1) * 2)
            for _ in range(2):
                got = f(mt.Tensor(x)).numpy()
            np.testing.assert_array_equal(got, reduction(mt.Tensor(x * 1.5), axis=-1).numpy() * 2)

    @pytest.mark.parametrize("f", [own_softmax, own_layer_norm])
    def test_gradients(self, f):
        def gradient(x, c):
            return mt.grad(f(x), [x], c)

        x, c = array((4, 33)).requires_grad_(), array((4, 33), seed=1)
        jitted = mt.jit(gradient)
        for _ in range(2):
            assert values(jitted(x, c)) == values(gradient(x, c))
        assert len([op for op in jitted.graphs[0].ops if op != "reshape"]) == 1

    def test_views_of_numbers_of_rows(self):
        x = array((5, 40))
        f = mt.jit(lambda x: x * x.sum(axis=-1).unsqueeze(-1).expand((5, 40)) + x.mean(axis=-1).reshape(5, 1))
        for _ in range(2):
            got = f(x)
        assert len(f.graphs[0].ops) == 1
        expected = x * x.sum(axis=-1, keepdims=True) + x.mean(axis=-1, keepdims=True)
        assert bits(got) == bits(expected)

    def test_a_view_that_is_a_result_shares_memory(self):
        def f(x):
            s = (x * 2).sum(axis=-1)
            v = s.unsqueeze(-1)
            return x * v, s, v

        jitted = mt.jit(f)
        for _ in range(2):
            y, s, v = jitted(array((5, 40)))
        before = s.tolist()
        v += 1
        assert s.tolist() == [a + 1 for a in before]

    def test_square_tensors(self):
        """The numbers of rows can be read along a row that is as long as there are rows."""
        x = array((16, 16))
        assert_same(lambda x: x * x.sum(axis=-1) + x.mean(axis=-1, keepdims=True), x)
        assert_same(lambda x: x * x.sum(axis=-1).expand((16, 16)) + x.sum(axis=-1).unsqueeze(0), x)
        assert_same(lambda x: x.sum(axis=0) + x.sum(axis=-1), x)


class TestSeparateCalls:
    def test_numbers_of_rows_read_along_a_row(self):
        """With as many rows as elements, the means broadcast along the other dimension."""
        x = array((16, 16))
        assert_same(lambda x: mean(x * 2) + x, x)
        assert_same(lambda x: mt.ops.layer_norm((x * 2) + 1, mean(x * 3), None), x)

    def test_other_axes_and_long_rows(self):
        x = array((6, 8))
        assert_same(lambda x: mt.ops.softmax(x * 2, axis=0) + 1, x)
        assert_same(lambda x: (x * 2).sum() + 1, x)
        ops = assert_same(lambda x: mt.ops.softmax(x * 2, axis=-1) + 1, array((2, 1 << 16)))
        assert "softmax" in ops

    def test_rows_of_different_lengths(self):
        assert_same(
            lambda x, y: mean(mt.ops.softmax(x * 2, -1)) + mean(mt.ops.softmax(y * 2, -1)),
            array((4, 8)),
            array((4, 9)),
        )

    def test_half_precision_and_integers(self):
        x = array((4, 8))
        for y in (x.astype("float16"), x.astype("bfloat16"), (x * 10).astype("int32")):
            jitted = mt.jit(lambda x: (x + x).sum(axis=-1) * 2)
            assert jitted(y).tolist() == ((y + y).sum(axis=-1) * 2).tolist()


def random_rows(seed):
    """A function of random element and row ops. Values are rows, or numbers with or without a last dimension."""
    rng = random.Random(seed)
    steps = [(rng.random(), rng.random(), rng.random(), rng.random()) for _ in range(rng.randint(4, 25))]
    unary = ["tanh", "sigmoid", "square", "relu", "negative", "exp"]
    binary = ["add", "multiply", "subtract", "maximum"]

    def f(*inputs):
        values = list(inputs)
        for kind, a, b, c in steps:
            x, y = (values[int(w * len(values))] for w in (a, b))
            if kind < 0.3:
                z = getattr(mt.ops, unary[int(c * len(unary))])(x)
            elif kind < 0.6:
                if x.ndim != y.ndim:
                    y = x
                z = getattr(mt.ops, binary[int(c * len(binary))])(x, y)
            elif kind < 0.7:
                z = mt.where(x > 0.1, x, x * c)
            elif x.ndim == 1:
                z = [x * c + 1, x.unsqueeze(-1), x.unsqueeze(-1).expand((x.shape[0], inputs[0].shape[1]))][int(c * 3)]
            elif x.shape[-1] == 1:
                z = [x * c + 1, x.squeeze(-1), x.reshape(-1).reshape(-1, 1)][int(c * 3)]
            elif kind < 0.8:
                z = [mt.ops.softmax, mt.ops.log_softmax, lambda x: mt.ops.rms_norm(x)][int(c * 3)](x)
            else:
                own = partial([mt.sum, mt.mean, mt.max, mt.min][int(b * 997 % 4)], axis=-1)
                reductions = [mean, maxima, partial(maxima, keepdims=True)]
                reductions += [own, partial(own, keepdims=True)] * 2
                z = reductions[int(c * 7)](x)
            values.append(mt.ops.clamp(z, -2, 2))
        return values[-4:]

    return f


@pytest.mark.parametrize("seed", range(120))
def test_random_functions(seed):
    rng = random.Random(seed + 1000)
    shape = (rng.choice([1, 2, 5, 12]), rng.choice([2, 5, 12, 40, 700]))
    dtype = rng.choice(DTYPES)
    inputs = [array(shape, dtype, 1), array(shape, dtype, 2), array((1, shape[1]), dtype, 3)]
    inputs += [array((shape[0], 1), dtype, 4), array((shape[0],), dtype, 5)]
    f = random_rows(seed)
    assert_same(f, *inputs)

    def with_gradients(*inputs):
        leaves = [t.detach().clone().requires_grad_() for t in inputs]
        results = [t for t in f(*leaves) if t.requires_grad]
        loss = sum((t * t).sum() for t in results)
        grads = mt.grad(loss, leaves, allow_unused=True) if results else []
        return [*results, *(g for g in grads if g is not None)]

    jitted = mt.jit(with_gradients)
    for _ in range(2):
        assert values(jitted(*inputs)) == values(with_gradients(*inputs))

    leaves = [t.clone().requires_grad_() for t in inputs]
    jitted = mt.jit(f)
    expected = None
    for g in (f, jitted, jitted):
        results = [t for t in g(*leaves) if t.requires_grad]
        if not results:
            return
        grads = mt.grad(sum((t * t).sum() for t in results), leaves, allow_unused=True)
        grads = [np.zeros(t.shape) if d is None else elements(d) for d, t in zip(grads, leaves, strict=True)]
        expected = expected or grads
        for a, b in zip(grads, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-4 * max(1, abs(b).max()))


class TestGradients:
    def test_element_ops_are_one_call(self):
        def f(x, y):
            z = mt.ops.gelu(x * y + 2).tanh() * y
            return mt.grad(z.sum(), [x, y])

        x, y = (array((3, 4), seed=k).requires_grad_() for k in range(2))
        jitted = mt.jit(f)
        for _ in range(2):
            assert values(jitted(x, y)) == values(f(x, y))
        assert len(jitted.graphs[0].ops) == 1

    def test_a_gradient_that_is_another_is_not_copied(self):
        def f(x, y, c):
            return mt.grad(x + y, [x, y], c)

        x, y, c = (array((3, 4), seed=k).requires_grad_() for k in range(3))
        graph = mt.jit(f)
        a, b = graph(x, y, c)
        a, b = graph(x, y, c)
        a += 1
        assert bits([b, c]) == bits([c, c])
        assert bits(a) == bits(c + 1)

    def test_second_derivatives_through_rows(self):
        def f(x, w):
            return mean(mt.ops.softmax(x * w + 1, axis=-1) * w) ** 2

        found = []
        for g in (f, mt.jit(f)):
            x, w = (array(s, "float64").requires_grad_() for s in ((3, 8), (8,)))
            first = mt.grad(g(x, w).sum(), [x, w], create_graph=True)
            second = mt.grad(sum((d * d).sum() for d in first), [x, w])
            found.append([t.numpy() for t in [*(d.detach() for d in first), *second]])
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
