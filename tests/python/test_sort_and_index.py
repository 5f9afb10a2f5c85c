"""Compares sorting, column reductions, cumulative sums and row indexing with NumPy, at the sizes where loops differ."""

import numpy as np
import pytest

import minitensor as mt

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]


def numbers(dtype, shape, seed=0):
    """Returns numbers with many ties. Floats include NaN, infinities and both zeros."""
    rng = np.random.default_rng(seed)
    low = 0 if dtype.startswith("u") else -50
    a = rng.integers(low, 50, shape).astype(dtype)
    if dtype in FLOATS:
        for value in (np.nan, -0.0, np.inf, -np.inf):
            a[rng.random(shape) < 0.02] = value
    return a


def stable_order(a, descending, axis=-1):
    """Returns the indices of a stable sort, with NaN as the largest value.

    It uses only NumPy's stable sort, because `np.unique` returns unsorted float16 on CPUs with AVX-512 FP16.
    """
    if not descending:
        return np.argsort(a, axis, kind="stable")
    backwards = np.argsort(np.flip(a, axis), axis, kind="stable")
    return a.shape[axis] - 1 - np.flip(backwards, axis)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_equal_elements_keep_their_order(dtype, descending):
    for shape in [(0,), (1,), (3, 100), (2, 1000), (200_000,)]:
        a = numbers(dtype, shape)
        values, indices = mt.ops.sort(mt.asarray(a), descending=descending)
        order = stable_order(a, descending)
        np.testing.assert_array_equal(indices.numpy(), order)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(a, order, -1))
        np.testing.assert_array_equal(mt.ops.argsort(mt.asarray(a), descending=descending).numpy(), order)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_topk_is_the_start_of_the_descending_order(dtype):
    for shape, ks in [((3, 40), [0, 1, 40]), ((2, 1000), [16, 100, 1000]), ((150_000,), [5, 3000, 100_000])]:
        a = numbers(dtype, shape)
        order = stable_order(a, True)
        for k in ks:
            values, indices = mt.ops.topk(mt.asarray(a), k)
            np.testing.assert_array_equal(indices.numpy(), order[..., :k])
            np.testing.assert_array_equal(values.numpy(), np.take_along_axis(a, order[..., :k], -1))


def test_random_numbers_are_sorted_by_every_axis():
    a = np.random.default_rng(1).standard_normal((70, 300, 3), np.float32)
    for axis in (0, 1, -1):
        values, indices = mt.ops.sort(mt.asarray(a), axis=axis)
        np.testing.assert_array_equal(values.numpy(), np.sort(a, axis))
        np.testing.assert_array_equal(indices.numpy(), np.argsort(a, axis, kind="stable"))
    long = np.random.default_rng(2).standard_normal(300_001)
    np.testing.assert_array_equal(mt.ops.sort(mt.asarray(long)[::-1]).values.numpy(), np.sort(long))


REDUCTIONS = ["max", "min", "argmax", "argmin", "any", "all", "count_nonzero", "prod", "sum", "mean"]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", *FLOATS])
def test_columns_reduce_like_numpys(name, dtype):
    if dtype == "bool" and name in ("max", "min", "argmax", "argmin") or name == "mean" and dtype not in FLOATS:
        pytest.skip("the op doesn't take it")
    tables = [((300, 40), 0), ((3, 70, 9), 1), ((2, 3, 2000), (0, 1)), ((20_000, 8), 0), ((5, 6, 8, 4), (1, 2))]
    for shape, axis in tables:
        if isinstance(axis, tuple) and name.startswith("arg"):
            continue
        a = numbers(dtype, shape) if dtype != "bool" else numbers("int8", shape) % 7 == 0
        if name in ("sum", "mean", "prod"):
            a = np.nan_to_num(a, posinf=1, neginf=-1) % 5 if a.dtype.kind == "f" else a
        if name == "prod" and a.dtype.kind == "f":
            a = (1 + a.astype("float64") / 1e5).astype(dtype)
        wide = a.astype("float64") if a.dtype.kind == "f" and name in ("sum", "mean", "prod") else a
        for keepdims in (False, True):
            expected = getattr(np, name)(wide, axis=axis, keepdims=keepdims)
            got = getattr(mt.ops, name)(mt.asarray(a), axis, keepdims).numpy()
            assert got.shape == expected.shape
            if wide is a:
                np.testing.assert_array_equal(got, expected)
            else:
                np.testing.assert_allclose(got, expected, rtol={"float16": 2e-3, "float32": 1e-5}.get(dtype, 1e-12))


@pytest.mark.parametrize("name", ["max", "min", "mean", "prod", "cumsum"])
def test_gradients_down_columns_are_those_along_rows(name):
    a = np.random.default_rng(3).integers(-3, 4, (9, 10)).astype("float64")
    weight = mt.asarray(np.random.default_rng(4).standard_normal((9, 10) if name == "cumsum" else 10))
    op = getattr(mt.ops, name)
    columns, rows = mt.asarray(a), mt.asarray(np.ascontiguousarray(a.T))
    columns.requires_grad = rows.requires_grad = True
    (op(columns, axis=0) * weight).sum().backward()
    (op(rows, axis=-1) * (weight.T if name == "cumsum" else weight)).sum().backward()
    np.testing.assert_allclose(columns.grad.numpy(), rows.grad.numpy().T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "float32", "float64", "complex64"])
def test_cumulative_sums_equal_numpy(dtype):
    rng = np.random.default_rng(5)
    for shape, axis in [((0,), 0), ((100_000,), -1), ((3, 700), -1), ((300, 700), 0), ((3, 50, 20), 1), ((50, 3), 0)]:
        a = (rng.integers(-1, 2, shape)).astype(dtype)
        got = mt.ops.cumsum(mt.asarray(a), axis).numpy()
        np.testing.assert_array_equal(got, np.cumsum(a, axis, dtype="int64" if dtype == "int8" else dtype))


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS, "complex64", "complex128"])
def test_rows_of_every_dtype_are_selected(dtype):
    rng = np.random.default_rng(6)
    for table, index in [((50, 3), (4, 5)), ((50, 1), (3000,)), ((7, 128), ()), ((7, 0), (3,)), ((9, 5), (0, 2))]:
        a = rng.integers(0, 2, table).astype(dtype)
        i = rng.integers(-table[0], table[0], index)
        np.testing.assert_array_equal(mt.ops.embedding(mt.asarray(a), mt.asarray(i)).numpy(), a[i])
        np.testing.assert_array_equal(mt.asarray(a)[mt.asarray(i)].numpy(), a[i])
        np.testing.assert_array_equal(mt.ops.take(mt.asarray(a.T), mt.asarray(i), 1).numpy(), np.take(a.T, i, 1))


def test_an_index_out_of_range_in_a_long_tensor_is_reported():
    index = np.zeros(200_000, int)
    index[150_000], index[180_000] = 9, -9
    x, rows = mt.asarray(np.ones(3)), mt.asarray(np.ones((200_000, 2)))
    for call in (
        lambda i: x[i],
        lambda i: mt.ops.gather(x, i),
        lambda i: mt.ops.embedding(x.reshape(3, 1), i),
        lambda i: mt.ops.scatter(rows[:, 0], i, 3),
        lambda i: mt.ops.scatter_rows(rows, i, 3),
    ):
        with pytest.raises(IndexError, match="index 9 is out of range"):
            call(mt.asarray(index))
    with pytest.raises(IndexError, match="index 0 is out of range for size 0"):
        mt.ops.embedding(mt.asarray(np.ones((0, 2))), mt.asarray(index[:1]))


def test_scatter_sums_do_not_depend_on_threads():
    rng = np.random.default_rng(7)
    x, index = mt.asarray(rng.standard_normal((5000, 64), np.float32)), mt.asarray(rng.integers(0, 40, 5000))
    threads = mt.get_num_threads()
    sums = []
    try:
        for n in (1, 2, 5):
            mt.set_num_threads(n)
            sums.append(mt.ops.scatter_rows(x, index, 50).numpy())
    finally:
        mt.set_num_threads(threads)
    assert all((s == sums[0]).all() for s in sums)
    expected = np.zeros((50, 64))
    np.add.at(expected, index.numpy(), x.numpy())
    np.testing.assert_allclose(sums[0], expected, rtol=1e-4, atol=1e-4)
