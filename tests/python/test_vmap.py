"""`mt.vmap`: a batch gives what the function gives for each example."""

import gc
import weakref
from collections import namedtuple

import numpy as np
import pytest
from vmap_checks import FUNCTIONS, SIZE, assert_close, assert_same, looped, randn

import minitensor as mt


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_batch_is_the_loop(name):
    assert_same(FUNCTIONS[name], randn(SIZE, 4, 4))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_for_any_layout(name):
    assert_same(FUNCTIONS[name], randn(4, 4, SIZE).T)
    assert_same(FUNCTIONS[name], randn(4, SIZE, 4), in_axes=1)
    assert_same(FUNCTIONS[name], randn(4, 4, SIZE), in_axes=-1)
    assert_same(FUNCTIONS[name], randn(2 * SIZE, 4, 8)[::2, :, ::2])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_example_and_none(name):
    f, x = FUNCTIONS[name], randn(1, 4, 4)
    assert_close(mt.vmap(f)(x), looped(f, x))
    one, none = mt.vmap(f)(x), mt.vmap(f)(x[:0])
    pairs = zip(one, none, strict=True) if isinstance(one, tuple) else [(one, none)]
    for a, b in pairs:
        assert b.shape == (0, *a.shape[1:])
        assert a.dtype == b.dtype


@pytest.mark.parametrize("name", FUNCTIONS)
def test_under_jit(name):
    f, x = FUNCTIONS[name], randn(SIZE, 4, 4)
    jitted = mt.jit(mt.vmap(f))
    for other in (x, x + 1, x * 2):
        assert_close(jitted(other), looped(f, other))
    assert len(jitted.graphs) == 1
    assert_close(mt.vmap(mt.jit(f))(x), looped(f, x))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nested(name):
    f, x = FUNCTIONS[name], randn(2, SIZE, 4, 4)
    expected = looped(lambda x: looped(f, x), x)
    assert_close(mt.vmap(mt.vmap(f))(x), expected)
    assert_close(mt.jit(mt.vmap(mt.vmap(f)))(x), expected)


def test_shared_arguments():
    def f(x, y):
        return (x * y).sum(axis=-1) + (x @ y.T).sum() - mt.ops.concat([x, y], axis=0)[0, 0]

    x, y = randn(SIZE, 2, 4), randn(SIZE, 2, 4, seed=1)
    assert_same(f, x, y)
    assert_same(f, x, y[0], in_axes=(0, None))
    assert_same(f, x[0], y, in_axes=(None, 0))
    assert_same(f, mt.ops.moveaxis(x, 0, 1), y, in_axes=(1, 0))


def test_examples_of_different_ranks_broadcast():
    assert_same(lambda x, y: x + y * x, randn(SIZE, 4), randn(SIZE, 2, 4))
    assert_same(lambda x, y: x + y, randn(SIZE), randn(SIZE, 2, SIZE))
    assert_same(lambda x, y: x @ y, randn(SIZE, 4, 4), randn(SIZE, 2, 4, 4))
    assert_same(lambda x, y: x @ y, randn(SIZE, 4), randn(SIZE, 4))
    assert_same(lambda x, y: mt.ops.where(x > 0, y, x), randn(SIZE), randn(SIZE, 5))


def test_matrix_products_with_a_shared_side():
    w = randn(4, 5)
    assert_same(lambda x, w: x @ w, randn(SIZE, 4), w, in_axes=(0, None))
    assert_same(lambda x, w: x @ w, randn(SIZE, 2, 4), w, in_axes=(0, None))
    assert_same(lambda x, w: w.T @ x, randn(SIZE, 4), w, in_axes=(0, None))
    assert_same(lambda x, w: w.T @ x, randn(SIZE, 4, 2), w, in_axes=(0, None))


def test_positions_that_differ():
    positions = mt.Tensor([[0, 2], [1, -1], [3, 3]])
    table = randn(4, 5)
    assert_same(lambda i, t: t[i], positions, table, in_axes=(0, None))
    assert_same(lambda i, t: mt.ops.take(t, i, axis=1), positions, table, in_axes=(0, None))
    assert_same(lambda i, t: mt.ops.embedding(t, i), positions, table, in_axes=(0, None))
    assert_same(lambda i, t: t[i], positions, randn(SIZE, 4, 5))
    assert_same(lambda t: t[mt.Tensor([0, -1])], randn(SIZE, 4, 5))


def test_a_closure_over_the_batch():
    x = randn(SIZE, 4)
    assert_same(lambda one: (one - x).sum(axis=0) + (one - x[0]), x)


def test_containers():
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


def test_keywords_are_shared():
    assert_close(mt.vmap(lambda x, scale: x * scale)(randn(SIZE, 2), scale=randn(2)), randn(SIZE, 2) * randn(2))


def test_a_shared_result_is_repeated():
    x, y = randn(SIZE, 2), randn(4)
    _, got = mt.vmap(lambda x: (x, y * 2))(x)
    got += 1
    assert_close(got, mt.ops.stack([y * 2 + 1] * SIZE))


def test_results_of_python_ops():
    @mt.custom_op
    def vmap_test_op(x, y, scale=2.0):
        return x * y.sum() * scale

    try:
        assert_same(lambda x, y: mt.ops.vmap_test_op(x, y, scale=3.0), randn(SIZE, 2), randn(SIZE, 4))
    finally:
        mt.unregister_custom_op_py("vmap_test_op")


def test_methods():
    class Model:
        scale = 2.0

        @mt.vmap
        def apply(self, x):
            return x * self.scale

    with pytest.raises(TypeError, match="argument 0 is of type Model"):
        Model().apply(randn(SIZE))


def test_nothing_is_kept():
    x = randn(SIZE, 4, requires_grad=True)
    y = mt.vmap(lambda x: (x * 2).exp())(x)
    ref = weakref.ref(x)
    del x, y
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "int32", "bool"])
def test_are_those_of_the_loop(dtype):
    x = mt.Tensor(np.random.default_rng(0).integers(0, 3, (SIZE, 4, 4))).astype(dtype)
    functions = [lambda x: x + x.T, lambda x: x @ x, lambda x: x.sum(axis=0), lambda x: mt.ops.concat([x, x * 2])]
    for f in functions[2 if dtype == "bool" else 0 :]:
        got, expected = mt.vmap(f)(x), looped(f, x)
        assert got.dtype == expected.dtype
        assert got.astype("complex64").tolist() == expected.astype("complex64").tolist()


def test_half_precision_is_rounded_once():
    for dtype in ("float16", "bfloat16"):
        x = randn(SIZE, 4, 4).astype(dtype).detach().requires_grad_()
        f = lambda x: mt.ops.softmax(x @ x, axis=0) * x.mean()  # noqa: E731
        got, expected = mt.vmap(f)(x), looped(f, x)
        assert got.astype("float32").tolist() == expected.astype("float32").tolist()
        got, expected = (mt.grad(t.sum(), x)[0].astype("float32") for t in (got, expected))
        assert got.tolist() == expected.tolist()


def test_are_an_error_by_default():
    for f in (lambda x: x + mt.rand(2), mt.ops.dropout, lambda x: mt.ops.rand_like(x)):
        with pytest.raises(RuntimeError, match="randomness="):
            mt.vmap(f)(mt.ones(SIZE, 2))


def test_different():
    got = mt.vmap(lambda x: x + mt.rand(8), randomness="different")(mt.zeros(SIZE, 8)).numpy()
    assert len(np.unique(got)) == got.size
    dropped = mt.vmap(lambda x: mt.ops.dropout(x, 0.5), randomness="different")(mt.ones(64, 64)).numpy()
    assert len(np.unique(dropped, axis=0)) > 60


def test_the_same():
    for f in (lambda x: x + mt.rand(8), mt.ops.dropout, lambda x: mt.ops.rand_like(x)):
        got = mt.vmap(f, randomness="same")(mt.ones(SIZE, 8)).numpy()
        assert (got == got[0]).all()


def test_of_runs_of_a_graph():
    f = mt.jit(mt.vmap(lambda x: x + mt.rand(8), randomness="different"))
    first, second = f(mt.zeros(SIZE, 8)).numpy(), f(mt.zeros(SIZE, 8)).numpy()
    assert len(np.unique([first, second])) == 2 * first.size
    assert len(f.graphs) == 1


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_numbers_are_those_of_the_seed_with_and_without_a_graph(randomness):
    f = mt.vmap(lambda x: x + mt.rand(3), randomness=randomness)
    jitted, x = mt.jit(f), mt.zeros(SIZE, 3)
    runs = []
    for function in (f, jitted, jitted):
        mt.manual_seed(1)
        runs.append((function(x).tolist(), mt.get_rng_state()))
    assert runs[0] == runs[1] == runs[2]


def test_a_key_is_an_argument_like_any_other():
    keys = mt.Tensor(np.array([[1, 2], [1, 2], [3, 4]], dtype="uint64"))
    got = mt.vmap(lambda key: mt.ops.random.uniform(key, [4]))(keys).numpy()
    assert (got[0] == got[1]).all()
    assert (got[0] != got[2]).any()
