"""Half floats in memory: element ops convert them in registers, and products use the instructions of the CPU."""

import numpy as np
import pytest

import minitensor as mt

HALVES = [mt.float16, mt.bfloat16]


def every_half(dtype):
    """All half floats, as a tensor."""
    bits = np.arange(65536, dtype=np.uint32)
    if dtype == mt.float16:
        return mt.Tensor(bits.astype(np.uint16).view(np.float16))
    return mt.Tensor((bits << 16).view(np.float32)).astype(dtype)


def exact(tensor):
    return np.asarray(tensor.detach().astype(mt.float32)).astype(np.float64)


def rounded(numbers, dtype):
    """Numbers in f32, rounded to a half float by NumPy."""
    numbers = np.asarray(numbers, np.float32)
    if dtype == mt.float16:
        with np.errstate(over="ignore"):
            return numbers.astype(np.float16).astype(np.float64)
    bits = numbers.view(np.uint32).astype(np.uint64)
    nearest = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint32)
    return np.where(np.isnan(numbers), np.nan, (nearest << 16).view(np.float32).astype(np.float64))


def assert_same(got, expected):
    np.testing.assert_array_equal(exact(got), expected)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_every_half_float_is_widened_and_rounded(dtype):
    x = every_half(dtype)
    numbers = np.asarray(x.astype(mt.float32))
    with np.errstate(all="ignore"):
        assert_same(x + 1.5, rounded(numbers + np.float32(1.5), dtype))
        assert_same(x * x.flip(0), rounded(numbers * numbers[::-1], dtype))
        assert_same(-x, -numbers.astype(np.float64))
        np.testing.assert_array_equal(np.asarray(x < 0.5), numbers < 0.5)
        np.testing.assert_array_equal(exact(mt.where(x < 0.5, x, -x)), np.where(numbers < 0.5, numbers, -numbers))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ["exp", "tanh", "swish", "asin", "log1p", "gelu"])
def test_functions_are_those_of_f32(name, dtype):
    x = every_half(dtype)
    wide = getattr(mt.ops, name)(x.astype(mt.float32))
    assert_same(getattr(mt.ops, name)(x), rounded(np.asarray(wide), dtype))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_other_layouts_and_mixed_dtypes(dtype):
    x = (every_half(dtype)[: 200 * 300]).reshape((200, 300))
    numbers = np.asarray(x.astype(mt.float32))
    row, column = x[3], x[:, 7:8]
    with np.errstate(all="ignore"):
        assert_same(x + row, rounded(numbers + numbers[3], dtype))
        assert_same(x + column, rounded(numbers + numbers[:, 7:8], dtype))
        assert_same(x.T + x.T, rounded(numbers.T + numbers.T, dtype))
        assert_same(x[::2, ::3] * 2.0, rounded(numbers[::2, ::3] * 2, dtype))
        y = x.copy()
        y += x
        assert_same(y, rounded(numbers + numbers, dtype))
        mixed = x + mt.Tensor(numbers * 0 + np.float32(0.1))
        assert mixed.dtype == mt.float32
        np.testing.assert_array_equal(np.asarray(mixed), numbers + (numbers * 0 + np.float32(0.1)))


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64, *HALVES], ids=str)
@pytest.mark.parametrize("shape", [(300, 1000), (7, 300, 129), (1000, 128), (3, 40000)], ids=str)
def test_one_number_for_each_row(dtype, shape):
    x = mt.Tensor(np.random.default_rng(1).standard_normal(shape)).astype(dtype)
    m = x[..., 5:6]
    wide = mt.float64 if dtype == mt.float64 else mt.float32
    numbers, of_rows = np.asarray(x.astype(wide)), np.asarray(m.astype(wide))
    for got, expected in [(x - m, numbers - of_rows), (m * x, of_rows * numbers)]:
        expected = rounded(expected, dtype) if dtype in HALVES else expected
        np.testing.assert_array_equal(np.asarray(got.astype(mt.float64)), expected.astype(np.float64))
    z = x.copy()
    z -= m.copy()
    np.testing.assert_array_equal(np.asarray(z.astype(mt.float64)), np.asarray((x - m).astype(mt.float64)))


def test_products_of_bfloat16():
    rng = np.random.default_rng(2)
    for m, k, n in [(8, 8, 8), (17, 33, 40), (64, 255, 48), (130, 64, 9), (1, 64, 64), (64, 64, 1), (3, 5, 2)]:
        a = rng.integers(-8, 9, (m, k)).astype(np.float32)
        b = rng.integers(-8, 9, (k, n)).astype(np.float32)
        x, y = mt.Tensor(a).astype(mt.bfloat16), mt.Tensor(b).astype(mt.bfloat16)
        # Sums of small integers are exact, so only the result is rounded.
        expected = rounded(a @ b, mt.bfloat16)
        assert_same(x @ y, expected)
        assert_same(mt.Tensor(a.T.copy()).astype(mt.bfloat16).T @ y, expected)
        assert_same(x @ mt.Tensor(b.T.copy()).astype(mt.bfloat16).T, expected)
        assert_same((y.T @ x.T).T, expected)


def test_products_of_batches_of_bfloat16_and_their_gradients():
    rng = np.random.default_rng(3)
    a = rng.integers(-4, 5, (3, 2, 20, 30)).astype(np.float32)
    b = rng.integers(-4, 5, (2, 30, 24)).astype(np.float32)
    x, y = (mt.Tensor(t).astype(mt.bfloat16).requires_grad_() for t in (a, b))
    z = x @ y
    assert_same(z, rounded(a @ b, mt.bfloat16))
    z.sum().backward()
    ones = np.ones((3, 2, 20, 24), np.float32)
    assert_same(x.grad, rounded(ones @ np.swapaxes(b, -1, -2), mt.bfloat16))
    assert_same(y.grad, rounded((np.swapaxes(a, -1, -2) @ ones).sum(0), mt.bfloat16))


def test_products_of_subnormal_and_special_numbers():
    tiny = mt.Tensor(np.full((16, 16), 1e-39, np.float32)).astype(mt.bfloat16)
    large = mt.Tensor(np.full((16, 16), 1e38, np.float32)).astype(mt.bfloat16)
    expected = rounded(np.full((16, 16), 16 * exact(tiny)[0, 0] * exact(large)[0, 0]), mt.bfloat16)
    assert_same(tiny @ large, expected)
    special = np.ones((16, 16), np.float32)
    special[2, 3], special[4, 5] = np.nan, np.inf
    product = exact(
        mt.Tensor(special).astype(mt.bfloat16) @ mt.Tensor(np.ones((16, 16), np.float32)).astype(mt.bfloat16)
    )
    assert np.isnan(product[2]).all() and np.isinf(product[4]).all()
    others = [i for i in range(16) if i not in (2, 4)]
    assert (product[others] == 16).all()
