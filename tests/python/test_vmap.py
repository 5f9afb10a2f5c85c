"""`mt.vmap`: a batch gives what the function gives for each example."""

import gc
import weakref
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minitensor as mt

SIZE = 3


def randn(*shape, seed=0, **options):
    rng = np.random.default_rng(seed + len(shape) + sum(shape))
    return mt.Tensor(rng.standard_normal(shape), **options)


def looped(f, *args, in_axes=0):
    """The results of a function for each example, stacked."""
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    size = next(t.shape[a] for t, a in zip(args, axes, strict=True) if a is not None)
    parts = [
        f(*(t if a is None else mt.ops.moveaxis(t, a, 0)[k] for t, a in zip(args, axes, strict=True)))
        for k in range(size)
    ]
    if isinstance(parts[0], tuple):
        return tuple(mt.ops.stack(list(each)) for each in zip(*parts, strict=True))
    return mt.ops.stack(parts)


def assert_close(got, expected):
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_close(a, b)
        return
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-12)


def assert_same(f, *args, in_axes=0):
    """`vmap` gives what a loop gives: the results, and the gradients of all arguments."""
    assert_close(mt.vmap(f, in_axes=in_axes)(*args), looped(f, *args, in_axes=in_axes))
    leaves = [t.detach().requires_grad_() if t.dtype in (mt.float32, mt.float64) else t for t in args]
    floats = [t for t in leaves if t.requires_grad]

    def gradients(results):
        results = [t for t in (results if isinstance(results, tuple) else (results,)) if t.requires_grad]
        if not results or not floats:
            return []
        weights = [mt.Tensor(np.cos(np.arange(t.numel())).reshape(t.shape)).astype(t.dtype) for t in results]
        given = mt.grad(results, floats, weights, allow_unused=True)
        return [g if g is not None else mt.zeros_like(t) for g, t in zip(given, floats, strict=True)]

    try:
        expected = gradients(looped(f, *leaves, in_axes=in_axes))
    except RuntimeError as error:
        # The function changes in place what its gradient needs.
        assert "in place" in str(error)
        return
    assert_close(gradients(mt.vmap(f, in_axes=in_axes)(*leaves)), expected)


def in_place(x):
    y = x * 2
    y[1:] += x[:-1]
    y.T[0] *= 3
    z = y + 1
    y[0, 0] = 7
    return y, z, y.sum(axis=0)


def a_constant_that_changes(x):
    total = mt.zeros(4, dtype="float64")
    for k in range(3):
        total[k] = x[k, 0]
        total += x[1]
    return total


def masked(x):
    return mt.ops.where(x > 0, x, x.exp())


FUNCTIONS = {
    "elements": lambda x: (x * 2 + 1).tanh() * x.sigmoid() - x,
    "sum": lambda x: x.sum(),
    "sum of an axis": lambda x: x.sum(axis=0) + x.mean(axis=1),
    "keepdims": lambda x: x - x.max(axis=-1, keepdims=True),
    "softmax": lambda x: mt.ops.softmax(x, axis=0),
    "norm": lambda x: mt.ops.layer_norm(x, mt.ones(4, dtype="float64"), mt.zeros(4, dtype="float64")),
    "matmul": lambda x: x @ x.T @ x,
    "matrix and vector": lambda x: x @ x[0] + x[1] @ x,
    "reshape": lambda x: x.reshape(2, 8).reshape(-1),
    "reshape a transposed": lambda x: x.T.reshape(-1) * 2,
    "axes": lambda x: mt.ops.moveaxis(x.unsqueeze(1), -1, 0).squeeze(),
    "expand": lambda x: mt.ops.expand(x[0], [5, 4]) * x[1],
    "broadcast": lambda x: x[0] + x[:, 0].reshape(4, 1) * x[0, 0],
    "index": lambda x: x[1:3, ::2] + x[-1, 1],
    "reversed": lambda x: x[::-1],
    "list of positions": lambda x: x[mt.Tensor([2, 0])],
    "concat": lambda x: mt.ops.concat([x, mt.ones(1, 4, dtype="float64"), x * 2], axis=0),
    "stack": lambda x: mt.ops.stack([x[0], x[1], mt.zeros(4, dtype="float64")], axis=-1),
    "pad": lambda x: mt.ops.pad(x, [1, 2], value=3.0),
    "roll": lambda x: mt.ops.roll(x, 1, axis=1),
    "sort": lambda x: mt.ops.sort(x, axis=0)[0],
    "cumsum": lambda x: mt.ops.cumsum(x, axis=0),
    "where": masked,
    "gather": lambda x: mt.ops.gather(x, mt.Tensor([[0], [1], [2], [3]]), axis=-1),
    "prod": lambda x: mt.ops.prod(x, axis=1),
    "triangle": lambda x: mt.ops.tril(x),
    "dtypes": lambda x: x.astype("float32").astype("float64") + 1,
    "detached": lambda x: x * x.detach(),
    "no gradient": lambda x: x.detach() * 2,
    "several results": lambda x: (x.sum(), x * 2, x[0]),
    "the argument": lambda x: x,
    "a constant": lambda x: mt.ones(2, dtype="float64"),
    "in place": in_place,
    "constant that changes": a_constant_that_changes,
    "convolution": lambda x: mt.ops.conv1d(x.reshape(1, 2, 8), mt.ones(3, 2, 3, dtype="float64"), None),
    "convolution by the example": lambda x: mt.ops.conv1d(mt.ones(1, 2, 9, dtype="float64"), x.reshape(2, 2, 4), None),
}


class TestResults:
    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_a_batch_is_the_loop(self, name):
        assert_same(FUNCTIONS[name], randn(SIZE, 4, 4))

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_for_any_layout(self, name):
        assert_same(FUNCTIONS[name], randn(4, 4, SIZE).T)
        assert_same(FUNCTIONS[name], randn(4, SIZE, 4), in_axes=1)
        assert_same(FUNCTIONS[name], randn(4, 4, SIZE), in_axes=-1)
        assert_same(FUNCTIONS[name], randn(2 * SIZE, 4, 8)[::2, :, ::2])

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_one_example_and_none(self, name):
        f, x = FUNCTIONS[name], randn(1, 4, 4)
        assert_close(mt.vmap(f)(x), looped(f, x))
        one, none = mt.vmap(f)(x), mt.vmap(f)(x[:0])
        pairs = zip(one, none, strict=True) if isinstance(one, tuple) else [(one, none)]
        for a, b in pairs:
            assert b.shape == (0, *a.shape[1:])
            assert a.dtype == b.dtype

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_under_jit(self, name):
        f, x = FUNCTIONS[name], randn(SIZE, 4, 4)
        jitted = mt.jit(mt.vmap(f))
        for other in (x, x + 1, x * 2):
            assert_close(jitted(other), looped(f, other))
        assert len(jitted.graphs) == 1
        assert_close(mt.vmap(mt.jit(f))(x), looped(f, x))

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_nested(self, name):
        f, x = FUNCTIONS[name], randn(2, SIZE, 4, 4)
        expected = looped(lambda x: looped(f, x), x)
        assert_close(mt.vmap(mt.vmap(f))(x), expected)
        assert_close(mt.jit(mt.vmap(mt.vmap(f)))(x), expected)

    def test_shared_arguments(self):
        def f(x, y):
            return (x * y).sum(axis=-1) + (x @ y.T).sum() - mt.ops.concat([x, y], axis=0)[0, 0]

        x, y = randn(SIZE, 2, 4), randn(SIZE, 2, 4, seed=1)
        assert_same(f, x, y)
        assert_same(f, x, y[0], in_axes=(0, None))
        assert_same(f, x[0], y, in_axes=(None, 0))
        assert_same(f, mt.ops.moveaxis(x, 0, 1), y, in_axes=(1, 0))

    def test_examples_of_different_ranks_broadcast(self):
        assert_same(lambda x, y: x + y * x, randn(SIZE, 4), randn(SIZE, 2, 4))
        assert_same(lambda x, y: x + y, randn(SIZE), randn(SIZE, 2, SIZE))
        assert_same(lambda x, y: x @ y, randn(SIZE, 4, 4), randn(SIZE, 2, 4, 4))
        assert_same(lambda x, y: x @ y, randn(SIZE, 4), randn(SIZE, 4))
        assert_same(lambda x, y: mt.ops.where(x > 0, y, x), randn(SIZE), randn(SIZE, 5))

    def test_matrix_products_with_a_shared_side(self):
        w = randn(4, 5)
        assert_same(lambda x, w: x @ w, randn(SIZE, 4), w, in_axes=(0, None))
        assert_same(lambda x, w: x @ w, randn(SIZE, 2, 4), w, in_axes=(0, None))
        assert_same(lambda x, w: w.T @ x, randn(SIZE, 4), w, in_axes=(0, None))
        assert_same(lambda x, w: w.T @ x, randn(SIZE, 4, 2), w, in_axes=(0, None))

    def test_positions_that_differ(self):
        positions = mt.Tensor([[0, 2], [1, -1], [3, 3]])
        table = randn(4, 5)
        assert_same(lambda i, t: t[i], positions, table, in_axes=(0, None))
        assert_same(lambda i, t: mt.ops.take(t, i, axis=1), positions, table, in_axes=(0, None))
        assert_same(lambda i, t: mt.ops.embedding(t, i), positions, table, in_axes=(0, None))
        assert_same(lambda i, t: t[i], positions, randn(SIZE, 4, 5))
        assert_same(lambda t: t[mt.Tensor([0, -1])], randn(SIZE, 4, 5))

    def test_a_closure_over_the_batch(self):
        x = randn(SIZE, 4)
        assert_same(lambda one: (one - x).sum(axis=0) + (one - x[0]), x)

    def test_containers(self):
        Pair = namedtuple("Pair", "a b")

        def f(pair, options):
            return {"sum": pair.a + options["x"][0], "rest": [pair.b * 2, "text", None]}

        a, b, x = randn(SIZE, 2), randn(2, SIZE), randn(2)
        got = mt.vmap(f, in_axes=((0, 1), {"x": None, "n": None}))(Pair(a, b), {"x": [x], "n": 2})
        assert_close(got["sum"], a + x)
        assert_close(got["rest"][0], b.T * 2)
        assert got["rest"][1:] == ["text", None]
        same = mt.vmap(f, in_axes=(0, None), out_axes={"sum": 1, "rest": -1})(Pair(a, b.T), {"x": [x]})
        assert_close(same["sum"], (a + x).T)
        assert_close(same["rest"][0], b * 2)

    def test_keywords_are_shared(self):
        assert_close(mt.vmap(lambda x, scale: x * scale)(randn(SIZE, 2), scale=randn(2)), randn(SIZE, 2) * randn(2))

    def test_a_shared_result_is_repeated(self):
        x, y = randn(SIZE, 2), randn(4)
        _, got = mt.vmap(lambda x: (x, y * 2))(x)
        got += 1
        assert_close(got, mt.ops.stack([y * 2 + 1] * SIZE))

    def test_results_of_python_ops(self):
        @mt.custom_op
        def vmap_test_op(x, y, scale=2.0):
            return x * y.sum() * scale

        try:
            assert_same(lambda x, y: mt.ops.vmap_test_op(x, y, scale=3.0), randn(SIZE, 2), randn(SIZE, 4))
        finally:
            mt.unregister_custom_op_py("vmap_test_op")

    def test_methods(self):
        class Model:
            scale = 2.0

            @mt.vmap
            def apply(self, x):
                return x * self.scale

        with pytest.raises(TypeError, match="argument 0 is of type Model"):
            Model().apply(randn(SIZE))

    def test_nothing_is_kept(self):
        x = randn(SIZE, 4, requires_grad=True)
        y = mt.vmap(lambda x: (x * 2).exp())(x)
        ref = weakref.ref(x)
        del x, y
        gc.collect()
        assert ref() is None


class TestGradients:
    def test_for_each_example(self):
        w = randn(4, requires_grad=True)
        f = lambda x: mt.grad(((x * w).sum() ** 2).exp(), w)[0]  # noqa: E731
        x = randn(SIZE, 4) / 4
        assert_close(mt.vmap(f)(x), looped(f, x))
        assert w.grad is None

    def test_of_a_model_for_each_example(self):
        model = mt.nn.Sequential(mt.nn.Linear(4, 8), mt.nn.Function(mt.ops.tanh), mt.nn.Linear(8, 2))
        parameters = list(model.parameters())
        x, y = randn(SIZE, 4).astype("float32"), randn(SIZE, 2).astype("float32")

        def f(x, y):
            return tuple(mt.grad(((model(x) - y) ** 2).mean(), parameters))

        for got in (mt.vmap(f)(x, y), mt.jit(mt.vmap(f))(x, y)):
            for a, b in zip(got, looped(f, x, y), strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)
        assert all(p.grad is None for p in parameters)

    def test_of_a_leaf_that_the_function_makes(self):
        def f(x):
            x = x.detach().requires_grad_()
            (x**3).sum().backward()
            return x.grad

        assert_close(mt.vmap(f)(randn(SIZE, 4)), looped(f, randn(SIZE, 4)))
        leaf = randn(SIZE, 4, requires_grad=True)
        assert not mt.vmap(f)(leaf).requires_grad

    def test_of_gradients(self):
        def f(x):
            x = x.detach().requires_grad_()
            (g,) = mt.grad((x**4).sum(), x, create_graph=True)
            (h,) = mt.grad((g * g).sum(), x)
            return h

        assert_close(mt.vmap(f)(randn(SIZE, 4)), looped(f, randn(SIZE, 4)))

    def test_through_gradients(self):
        def f(x):
            return mt.grad((x**3).sum(), x, create_graph=True)[0]

        x = randn(SIZE, 4, requires_grad=True)
        assert_close(mt.grad(mt.vmap(f)(x).sum(), x)[0], 6 * x)

    def test_of_captured_tensors(self):
        w, b = randn(4, 2, requires_grad=True), randn(2, requires_grad=True)
        f = lambda x: (x @ w + b).tanh()  # noqa: E731
        x = randn(SIZE, 4)
        got, expected = (mt.grad(y.sum(), [w, b]) for y in (mt.vmap(f)(x), looped(f, x)))
        assert_close(got, expected)
        mt.vmap(f)(x).sum().backward()
        assert_close(w.grad, expected[0])

    def test_of_tensors_with_a_history(self):
        w = randn(4, requires_grad=True)
        v = w.exp()
        x = randn(SIZE, 4, requires_grad=True)
        f = lambda x: (x * v).sum()  # noqa: E731
        y = mt.vmap(f)(x * 2)
        expected = mt.grad(looped(f, x * 2).sum(), [w, x], retain_graph=True)
        assert_close(mt.grad(y.sum(), [w, x]), expected)

    @pytest.mark.parametrize("name", ["elements", "softmax", "matmul", "detached", "in place", "reshape", "concat"])
    def test_of_higher_order(self, name):
        f = FUNCTIONS[name]

        def second(run):
            x = randn(SIZE, 4, 4, requires_grad=True)
            y = run(f, x)
            y = sum(t.sum() for t in y) if isinstance(y, tuple) else y.sin().sum()
            (g,) = mt.grad(y, x, create_graph=True)
            return g, mt.grad((g * g).sum(), x)[0] if g.requires_grad else g

        assert_close(second(lambda f, x: mt.vmap(f)(x)), second(looped))

    def test_a_detached_tensor_has_none(self):
        x = mt.Tensor([[1.0], [2.0]], requires_grad=True)
        (g,) = mt.grad(mt.vmap(lambda x: (x * x.detach()).sum())(x).sum(), x, create_graph=True)
        assert g.tolist() == [[1.0], [2.0]]
        assert not g.requires_grad

    def test_no_grad_inside(self):
        def f(x):
            with mt.no_grad():
                scale = x.sum()
            return x * scale

        assert_same(f, randn(SIZE, 4))

    def test_no_grad_outside(self):
        x = randn(SIZE, 4, requires_grad=True)
        with mt.no_grad():
            assert not mt.vmap(lambda x: x * 2)(x).requires_grad

    def test_a_captured_tensor_and_its_detached_twin(self):
        w = randn(4, requires_grad=True)
        f = lambda x: (w.detach() * x).sum() + (w * w.detach() * x).sum()  # noqa: E731
        got, expected = (mt.grad(y.sum(), w) for y in (mt.vmap(f)(randn(SIZE, 4)), looped(f, randn(SIZE, 4))))
        assert_close(got, expected)

    def test_of_an_op_with_a_gradient_of_its_own(self):
        @mt.custom_op(backward=lambda context, d: -2 * d)
        def vmap_test_reverse(x):
            return x

        try:
            assert_same(lambda x: mt.ops.vmap_test_reverse(x * 2) * x + x, randn(SIZE, 4))
        finally:
            mt.unregister_custom_op_py("vmap_test_reverse")

    def test_jacobian(self):
        x = randn(4, requires_grad=True)
        w = randn(3, 4)
        y = (w @ x).tanh()
        rows = mt.vmap(lambda v: mt.grad(y, x, v, retain_graph=True)[0])(mt.eye(3, dtype="float64"))
        expected = mt.ops.stack([mt.grad(y, x, v, retain_graph=True)[0] for v in mt.eye(3, dtype="float64")])
        assert_close(rows, expected)

    def test_hessian(self):
        def gradient(x):
            return mt.grad((x**3).sum() * x[0], x, create_graph=True)[0]

        x = randn(3, requires_grad=True)
        g = gradient(x)
        rows = mt.vmap(lambda v: mt.grad(g, x, v, retain_graph=True)[0])(mt.eye(3, dtype="float64"))
        expected = mt.ops.stack([mt.grad(g, x, v, retain_graph=True)[0] for v in mt.eye(3, dtype="float64")])
        assert_close(rows, expected)

    def test_under_jit(self):
        w = randn(4, requires_grad=True)
        f = mt.jit(mt.vmap(lambda x: (x * w).exp().sum()))
        for x in (randn(SIZE, 4), randn(SIZE, 4) / 2):
            assert_close(mt.grad(f(x).sum(), w)[0], mt.grad((x * w).exp().sum(), w)[0])
        assert len(f.graphs) == 1


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


class TestRandomFunctions:
    @pytest.mark.parametrize("seed", range(80))
    def test_are_the_loop(self, seed):
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
    def test_have_the_second_derivatives_of_the_loop(self, seed):
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


class TestRecordings:
    """A batch within other recordings."""

    def test_a_function_that_applies_a_batch(self):
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

    def test_an_op_in_python_that_applies_a_batch(self):
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

    def test_threads(self):
        def work(first):
            for seed in range(first, first + 10):
                f, _ = random_function(seed)
                x, y = randn(SIZE, 4, 4, seed=seed), randn(SIZE, 4, 4, seed=seed + 1)
                assert_close(mt.vmap(f)(x, y), looped(f, x, y))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(0, 40, 10)))


class TestDTypes:
    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "int32", "bool"])
    def test_are_those_of_the_loop(self, dtype):
        x = mt.Tensor(np.random.default_rng(0).integers(0, 3, (SIZE, 4, 4))).astype(dtype)
        functions = [lambda x: x + x.T, lambda x: x @ x, lambda x: x.sum(axis=0), lambda x: mt.ops.concat([x, x * 2])]
        for f in functions[2 if dtype == "bool" else 0 :]:
            got, expected = mt.vmap(f)(x), looped(f, x)
            assert got.dtype == expected.dtype
            assert got.astype("complex64").tolist() == expected.astype("complex64").tolist()

    def test_half_precision_is_rounded_once(self):
        for dtype in ("float16", "bfloat16"):
            x = randn(SIZE, 4, 4).astype(dtype).detach().requires_grad_()
            f = lambda x: mt.ops.softmax(x @ x, axis=0) * x.mean()  # noqa: E731
            got, expected = mt.vmap(f)(x), looped(f, x)
            assert got.astype("float32").tolist() == expected.astype("float32").tolist()
            got, expected = (mt.grad(t.sum(), x)[0].astype("float32") for t in (got, expected))
            assert got.tolist() == expected.tolist()


class TestRandomNumbers:
    def test_are_an_error_by_default(self):
        for f in (lambda x: x + mt.rand(2), mt.ops.dropout, lambda x: mt.ops.rand_like(x)):
            with pytest.raises(RuntimeError, match="randomness="):
                mt.vmap(f)(mt.ones(SIZE, 2))

    def test_different(self):
        got = mt.vmap(lambda x: x + mt.rand(8), randomness="different")(mt.zeros(SIZE, 8)).numpy()
        assert len(np.unique(got)) == got.size
        dropped = mt.vmap(lambda x: mt.ops.dropout(x, 0.5), randomness="different")(mt.ones(64, 64)).numpy()
        assert len(np.unique(dropped, axis=0)) > 60

    def test_the_same(self):
        for f in (lambda x: x + mt.rand(8), mt.ops.dropout, lambda x: mt.ops.rand_like(x)):
            got = mt.vmap(f, randomness="same")(mt.ones(SIZE, 8)).numpy()
            assert (got == got[0]).all()

    def test_of_runs_of_a_graph(self):
        f = mt.jit(mt.vmap(lambda x: x + mt.rand(8), randomness="different"))
        first, second = f(mt.zeros(SIZE, 8)).numpy(), f(mt.zeros(SIZE, 8)).numpy()
        assert len(np.unique([first, second])) == 2 * first.size
        assert len(f.graphs) == 1

    def test_a_key_is_an_argument_like_any_other(self):
        keys = mt.Tensor(np.array([[1, 2], [1, 2], [3, 4]], dtype="uint64"))
        got = mt.vmap(lambda key: mt.ops.random.uniform(key, [4]))(keys).numpy()
        assert (got[0] == got[1]).all()
        assert (got[0] != got[2]).any()


class TestErrors:
    def test_elements_are_not_known(self):
        def f(x):
            return x if x.sum() > 0 else -x

        with pytest.raises(RuntimeError, match=r"reads the elements of a tensor \(.*test_vmap.py, line \d+.*mt.where"):
            mt.vmap(f)(randn(SIZE, 2))
        for read in (lambda x: x * x[0].item(), lambda x: x * float(x.sum()), lambda x: mt.Tensor(x.numpy())):
            with pytest.raises(RuntimeError, match="reads the elements of a tensor"):
                mt.vmap(read)(randn(SIZE, 2))

    def test_elements_of_shared_tensors_are_known(self):
        w = mt.Tensor([2.0])
        assert mt.vmap(lambda x: x * w.item() if w.sum() > 0 else x)(mt.ones(2)).tolist() == [2.0, 2.0]
        with pytest.raises(RuntimeError, match="reads the elements"):
            mt.jit(mt.vmap(lambda x: x * w.item()))(mt.ones(2))

    def test_changes_of_arguments_and_captured_tensors(self):
        def f(x):
            x += 1
            return x

        x, total = randn(SIZE, 2), mt.zeros(2, dtype="float64")
        before = x.numpy().copy()
        with pytest.raises(RuntimeError, match="in place"):
            mt.vmap(f)(x)
        with pytest.raises(RuntimeError, match="in place"):
            mt.vmap(lambda x: total.add_(x))(x)
        assert (x.numpy() == before).all()
        assert total.tolist() == [0.0, 0.0]

    def test_a_stored_gradient(self):
        w = mt.ones(2, dtype="float64", requires_grad=True)
        w.grad = mt.ones(2, dtype="float64")

        def f(x):
            (x * w).sum().backward()
            return x

        with pytest.raises(RuntimeError, match="stores a gradient.*mt.grad"):
            mt.vmap(f)(randn(SIZE, 2))
        assert w.grad.tolist() == [1.0, 1.0]

    def test_an_optimizer(self):
        w = mt.ones(2, requires_grad=True)
        optimizer = mt.optim.SGD([w], lr=0.1)

        def f(x):
            (x * w).sum().backward()
            optimizer.step()
            return x

        with pytest.raises(RuntimeError, match="in place"):
            mt.vmap(f)(mt.ones(SIZE, 2))
        assert w.tolist() == [1.0, 1.0]
        assert w.grad is None

    def test_sizes_that_depend_on_elements(self):
        with pytest.raises(RuntimeError, match="sizes must not depend on elements"):
            mt.vmap(mt.ops.nonzero)(mt.Tensor([[1.0, 0.0], [1.0, 1.0]]))

    def test_axes(self):
        x = randn(SIZE, 2)
        cases = [
            (ValueError, "same size, but argument 0 has 3 and argument 1 2", {}, (x, x.T)),
            (ValueError, "no axis 2", {"in_axes": 2}, (x,)),
            (ValueError, "no axis 0", {}, (mt.Tensor(1.0),)),
            (ValueError, "no argument has an axis", {"in_axes": None}, (x,)),
            (ValueError, "no argument has an axis", {}, ()),
            (ValueError, "1 entries, but the function got 2", {"in_axes": (0,)}, (x, x)),
            (ValueError, "does not fit this Tensor", {"in_axes": ((0,),)}, (x,)),
            (TypeError, "argument 1 is of type float", {}, (x, 2.0)),
            (TypeError, "of type ndarray.*asarray", {}, (x.numpy(),)),
            (TypeError, "contains a str", {"in_axes": "0"}, (x,)),
            (ValueError, "out_axes must be integers", {"out_axes": None}, (x,)),
            (ValueError, "does not fit", {"out_axes": (0, 1)}, (x,)),
        ]
        for kind, message, options, args in cases:
            with pytest.raises(kind, match=message):
                mt.vmap(lambda x, *rest: x, **options)(*args)
        with pytest.raises(TypeError, match="takes a function"):
            mt.vmap(2)
        with pytest.raises(ValueError, match="randomness must be"):
            mt.vmap(abs, randomness="none")
        with pytest.raises(TypeError, match="the function returned a ndarray|reads the elements"):
            mt.vmap(lambda x: np.ones(2))(x)

    def test_an_error_in_the_function_ends_the_recording(self):
        def f(x):
            raise KeyError("own")

        for _ in range(2):
            with pytest.raises(KeyError, match="own"):
                mt.vmap(mt.vmap(f))(randn(2, 2))
        assert mt.vmap(lambda x: x.sum())(mt.ones(2, 2)).tolist() == [2.0, 2.0]
        jitted = mt.jit(lambda x: mt.vmap(f)(x))
        with pytest.raises(KeyError, match="own"):
            jitted(randn(2))
        assert float(mt.ones(1).sum()) == 1.0


@pytest.mark.parametrize("name", ["rms_norm", "layer_norm", "row op"])
def test_gradients_of_a_shared_weight_of_rows(name):
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
