"""Repeated calls of ops over cells, whose plans are kept. Each call has the results of NumPy."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minitensor as mt

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype("float32")


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


#: Calls that differ in one thing that decides how they are computed: functions of a square matrix and of an array.
ALIKE = [
    (lambda t: t.sum(axis=0), lambda a: a.sum(axis=0)),
    (lambda t: t.sum(axis=1), lambda a: a.sum(axis=1)),
    (lambda t: t.sum(), lambda a: a.sum()),
    (lambda t: t.sum(axis=(0, 1)), lambda a: a.sum()),
    (lambda t: t.sum(axis=0, dtype=mt.float64), lambda a: a.sum(axis=0, dtype="float64")),
    (lambda t: t.T.sum(axis=0), lambda a: a.T.sum(axis=0)),
    (lambda t: t[::-1].max(axis=1), lambda a: a[::-1].max(axis=1)),
    (lambda t: t.max(axis=1), lambda a: a.max(axis=1)),
    (lambda t: t.argmax(axis=1), lambda a: a.argmax(axis=1)),
    (lambda t: t.argmax(), lambda a: a.argmax()),
    (lambda t: t @ t, lambda a: a @ a),
    (lambda t: t @ t.T, lambda a: a @ a.T),
    (lambda t: t.T @ t, lambda a: a.T @ a),
    (lambda t: mt.ops.softmax(t, axis=0), lambda a: softmax(a, 0)),
    (lambda t: mt.ops.softmax(t, axis=1), lambda a: softmax(a, 1)),
    (lambda t: t.std(correction=1.0), lambda a: a.std(ddof=1)),
    (lambda t: t.std(correction=0.0), lambda a: a.std()),
    (lambda t: t.cumsum(axis=0), lambda a: a.cumsum(axis=0)),
    (lambda t: t.cumsum(axis=1), lambda a: a.cumsum(axis=1)),
    (lambda t: mt.ops.sort(t, axis=0).values, lambda a: np.sort(a, axis=0)),
    (lambda t: mt.ops.sort(t, axis=1).values, lambda a: np.sort(a, axis=1)),
]


def test_calls_of_equal_shapes_and_other_attributes_layouts_and_values() -> None:
    order = [k for k in range(len(ALIKE)) for _ in range(4)]
    RANDOM.shuffle(order)
    for k in order:
        ours, theirs = ALIKE[k]
        a = numbers(6, 6)
        found = ours(mt.Tensor(a))
        np.testing.assert_allclose(np.asarray(found), theirs(a), rtol=1e-5, atol=1e-6, err_msg=f"call {k}")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "complex64", "float16"])
def test_calls_of_other_dtypes(dtype: str) -> None:
    for _ in range(3):
        for other in (dtype, "float32"):
            a = (numbers(5, 4) * 10).astype(other)
            np.testing.assert_allclose(np.asarray(mt.Tensor(a).sum(axis=0)), a.sum(axis=0), rtol=2e-3, atol=2e-2)


def test_half_floats_within_composite_ops_and_outside() -> None:
    a = numbers(4, 4).astype("float16")
    for _ in range(3):
        # A composite op computes its parts in float32.
        assert mt.ops.matmul(mt.Tensor(a), mt.Tensor(a)).dtype == mt.float16
        assert mt.ops.linalg.matrix_product(mt.Tensor(a), mt.Tensor(a)).dtype == mt.float16
        x = mt.Tensor(a, requires_grad=True)
        mt.ops.group_norm(x.reshape(1, 4, 4), groups=2).sum().backward()
        assert x.grad.dtype == mt.float16


def test_optional_arguments_that_come_and_go() -> None:
    x = numbers(3, 8)
    normal = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    weight, bias = numbers(8), numbers(8)
    for _ in range(3):
        t, w, b = mt.Tensor(x), mt.Tensor(weight), mt.Tensor(bias)
        np.testing.assert_allclose(np.asarray(mt.ops.layer_norm(t)), normal, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.asarray(mt.ops.layer_norm(t, w)), normal * weight, rtol=1e-4, atol=1e-5)
        found = mt.ops.layer_norm(t, bias=b, weight=w)
        np.testing.assert_allclose(np.asarray(found), normal * weight + bias, rtol=1e-4, atol=1e-5)


def test_only_the_wanted_gradients() -> None:
    x, w = numbers(4, 5), numbers(5, 3)
    for of_x, of_w in [(True, True), (True, False), (False, True), (True, True), (False, True)]:
        tx, tw = mt.Tensor(x, requires_grad=of_x), mt.Tensor(w, requires_grad=of_w)
        (tx @ tw).sum().backward()
        assert (tx.grad is not None, tw.grad is not None) == (of_x, of_w)
        if tx.grad is not None:
            np.testing.assert_allclose(np.asarray(tx.grad), np.ones((4, 3)) @ w.T, rtol=1e-5)
        if tw.grad is not None:
            np.testing.assert_allclose(np.asarray(tw.grad), x.T @ np.ones((4, 3)), rtol=1e-5)


def test_results_are_new_memory() -> None:
    x = mt.ones((4, 4))
    first = x.sum(axis=0)
    second = (x * 2).sum(axis=0)
    assert first.tolist() == [4.0] * 4
    assert second.tolist() == [8.0] * 4
    first += 1
    assert (x * 2).sum(axis=0).tolist() == [8.0] * 4


def test_a_failing_call_between_two_others() -> None:
    x, good, bad = mt.Tensor(numbers(3, 4)), mt.Tensor([0, 3]), mt.Tensor([0, 4])
    expected = mt.ops.take(x, good, axis=1).tolist()
    for _ in range(3):
        with pytest.raises(IndexError):
            mt.ops.take(x, bad, axis=1)
        assert mt.ops.take(x, good, axis=1).tolist() == expected
        with pytest.raises(ValueError, match="does not match"):
            x @ x


def test_an_op_that_is_defined_again() -> None:
    for factor in (2.0, 3.0, 5.0):

        @mt.row_op(name="again::scaled_sum")
        def scaled_sum(x, factor=factor):
            return (x * factor).sum()

        for _ in range(3):
            assert scaled_sum(mt.ones(4)).item() == 4 * factor
        mt.unregister_custom_op_py("again::scaled_sum")


def test_threads_with_calls_of_their_own() -> None:
    def wrong(seed: int) -> int:
        random, count = np.random.default_rng(seed), 0
        for _ in range(200):
            a = random.normal(size=(5, 5)).astype("float32")
            axis = int(random.integers(2))
            count += not np.allclose(np.asarray(mt.Tensor(a).sum(axis=axis)), a.sum(axis=axis), atol=1e-5)
        return count

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(wrong, range(4))) == [0, 0, 0, 0]
