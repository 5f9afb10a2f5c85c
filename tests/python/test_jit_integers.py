"""Integers in graphs: element ops that read or store them as floats are fused, and give the same bits."""

import operator
import warnings

import numpy as np
import pytest
from jit_checks import bits

import minitensor as mt

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float32", "float64", "float16", "bfloat16"]


def integers(dtype, *shape, below=120):
    return mt.Tensor(np.random.default_rng([below, *shape]).integers(0, below, shape)).astype(dtype)


def floats(dtype, *shape):
    """Ordinary numbers, and those that no integer holds."""
    x = np.random.default_rng(shape).standard_normal(shape) * 50
    bad = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 127.5, -0.0, 255.9, -1.0, 65504])
    x.reshape(-1)[: len(bad)] = bad
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mt.Tensor(x).astype(dtype)


def ops(f, *args):
    """Returns the ops of the graph, which gives the bits and dtypes of the function."""
    jitted = mt.jit(f)
    jitted(*args)
    got, want = jitted(*args), f(*args)
    assert bits(got) == bits(want)
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    assert all((a.dtype, a.shape) == (b.dtype, b.shape) for a, b in pairs)
    return jitted.graphs[0].ops


CASES = {
    "quotient": lambda n, x: mt.ops.tanh(n / 255 - 0.5),
    "product": lambda n, x: n * x + 1,
    "comparison": lambda n, x: mt.where(n < x, x * 2, x - 1),
    "power": lambda n, x: x**2 + n,
    "cast": lambda n, x: (n.astype("float32") / 4 - 0.5) * 3,
    "cast to f64": lambda n, x: (n.astype("float64") + x) * 3,
    "stored": lambda n, x: (x * 100 + 0.5).astype(n.dtype),
    "stored beside another": lambda n, x: (y := x * 3, (y + 1).astype(n.dtype)),
    "read and stored": lambda n, x: (n.astype("float32") * x + 0.5).astype("int8"),
    "stored and read": lambda n, x: (x * 3).astype(n.dtype) * x + 1,
    "softmax": lambda n, x: mt.ops.softmax(n.astype("float32") * x),
    "softmax, stored": lambda n, x: (mt.ops.softmax(x) * 255).astype(n.dtype),
    "sum": lambda n, x: (n * x).sum(axis=-1),
    "number for each row": lambda n, x: mt.ops.softmax(x) * n[:, :1],
    "row of numbers": lambda n, x: mt.ops.softmax(x) * n[0],
    "labels": lambda n, x: mt.ops.cross_entropy(x * 2, (n % 8).astype("int64")[:, 0]),
}


@pytest.mark.parametrize("float_dtype", FLOATS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_results_are_those_of_separate_calls(dtype, float_dtype):
    n, x = integers(dtype, 5, 8), floats(float_dtype, 5, 8)
    for f in CASES.values():
        ops(f, n, x)


def test_integers_that_floats_do_not_hold_are_rounded_once():
    n = mt.Tensor([2**24 + 1, 2**31 - 1, -(2**31) + 1, 16777219], dtype="int32")
    ops(lambda n: n.astype("float32") * 1.5 + 1, n)
    ops(lambda n: n.astype("float32") * 1.5 + 1, mt.Tensor([2**53 + 1, 2**62 + 1, 2**24 + 1], dtype="int64"))
    ops(lambda n, x: n * x + 1, n, mt.Tensor([1.0, 2.0, 3.0, 4.0], dtype="float16"))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_images_are_normalized_in_one_call(dtype):
    image, mean = integers(dtype, 2, 3, 20, 20), mt.Tensor([[[0.4]], [[0.5]], [[0.6]]])
    cast = ops(lambda x: (x.astype("float32") / 255 - mean) / 0.25, image)
    assert cast == ["fused(astype, divide, subtract, divide)"]
    assert ops(lambda x: (x / 255 - mean) / 0.25, image) == ["fused(divide, subtract, divide)"]
    back = ops(lambda y: ((y * 0.25 + mean) * 255).astype(dtype), floats("float32", 2, 3, 20, 20))
    assert back == ["fused(multiply, add, multiply, astype)"]


def test_integers_between_floats_end_a_call():
    assert len(ops(lambda x: (x * 3).astype("int32") * x + 1, floats("float32", 4, 4))) == 2


ARITHMETIC = {
    "sums and products": lambda n, k: (n + k) * 3 - n * k,
    "bits": lambda n, k: ((n ^ (k << 2)) & ~n) | (n >> 1),
    "extrema": lambda n, k: mt.ops.maximum(n - k, mt.ops.minimum(k, n)) + n,
    "comparison": lambda n, k: mt.where(n * 2 < k, n, k + 1),
    "truth values": lambda n, k: ((n < k) & (n != 3)) | ~(k >= 5),
    "count": lambda n, k: n + (n < k) * n - (k == n),
    "powers": lambda n, k: n**2 + k * k,
    "clip": lambda n, k: mt.ops.maximum(n, 3) + mt.ops.minimum(k, 100),
    "truth of numbers": lambda n, k: mt.ops.logical_xor(n - k, n) & (k < 7),
}


def fused_with_machine_code(names):
    """Whether these are one call, or there is no machine code."""
    return mt.simd_level() == "baseline" or (len(names) == 1 and names[0].startswith("fused"))


@pytest.mark.parametrize("case", ARITHMETIC)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_arithmetic_of_integers_is_fused(dtype, case):
    for shape in (9,), (5, 301), (70_001,):
        n, k = integers(dtype, *shape, below=127), integers(dtype, *shape, below=126)
        assert fused_with_machine_code(ops(ARITHMETIC[case], n - 60, k))
        assert fused_with_machine_code(ops(ARITHMETIC[case], n[..., :-1:2], k[..., 1::2]))
        ops(ARITHMETIC[case], n, k[..., :1])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_quotients_and_rests_are_fused_up_to_32_bits(dtype):
    n, k = integers(dtype, 3000, below=127) - 60, integers(dtype, 3000, below=7) - 3

    def f(n, k):
        return (n * 3) // k + n % k * 2 - k % 3

    names = ops(f, n, k)
    assert fused_with_machine_code(names) or dtype.endswith("64")
    ops(f, mt.Tensor([-(2 ** (n.dtype.itemsize * 8 - 1)) if n.min() < 0 else 2], dtype=dtype), k - k - 1)


def test_arithmetic_of_several_dtypes_is_several_calls():
    n, k, x = integers("int32", 40), integers("int64", 40), floats("float32", 40)
    names = ops(lambda n, k, x: (n + n) * 3 + (k * 2 - k) + mt.where((n < 5) & (x > 0), x * 2, x), n, k, x)
    assert len(names) > 1
    ops(lambda n: (n * 2 + 1).astype("float32") * 0.5 + 1, n)
    ops(lambda n: ((n + 1) * 2).astype("int8") * 3 + 1, n)
    ops(lambda k: (k * (2**53 + 1) + (2**62 + 3)) ^ k, k)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_truth_values_are_compared_with_any_number(dtype):
    n, mask = integers(dtype, 40) if dtype in INTEGERS else floats(dtype, 40), integers("int64", 40) % 2 == 0
    ops(lambda n, m: mt.where(m < 0.5, n + 1, n), n, mask)
    ops(lambda n, m: mt.where(m == 0.5, n + 1, n * 2), n, mask)
    ops(lambda n, m: mt.where(mt.ops.logical_and(m, 0.5), n + 1, n), n, mask)
    ops(lambda n, m: mt.where(m > -1, n + 1, n), n, mask)
    ops(lambda n, m: mt.where(m == 300, n + 1, n), n, mask)
    ops(lambda n, m: mt.where(m == 1.00000001, n + 1, n), n, mask)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_large_calls_are_those_of_numpy(dtype):
    n, k = (np.random.default_rng(seed).integers(0, 120, (9, 2001)).astype(dtype) for seed in (3, 4))
    n[::3] -= 100
    k = k % 7 + 1
    x, y = mt.Tensor(n), mt.Tensor(k)
    binary = ["add", "sub", "mul", "floordiv", "mod", "and_", "or_", "xor", "rshift", "lt", "le", "eq"]
    for f in (getattr(operator, name) for name in binary):
        for a, b, c, d in (
            (x, y, n, k),
            (x, y[0], n, k[0]),
            (x[:, :1], y, n[:, :1], k),
            (x[:, ::2], y[:, ::-2], n[:, ::2], k[:, ::-2]),
            (x.T, y.T, n.T, k.T),
        ):
            np.testing.assert_array_equal(f(a, b).numpy(), f(c, d), err_msg=f.__name__)
    for name in ("iadd", "imul", "ifloordiv", "imod", "ixor", "ilshift", "irshift"):
        a, b = mt.Tensor(n), n.copy()
        getattr(operator, name)(a[:, 1:], y[:, 1:])
        getattr(operator, name)(b[:, 1:], k[:, 1:])
        np.testing.assert_array_equal(a.numpy(), b, err_msg=name)


@pytest.mark.parametrize("dtype", FLOATS)
def test_truth_values_are_fused_with_numbers(dtype):
    x, y = floats(dtype, 50, 30), floats(dtype, 50, 30).T.reshape(50, 30)
    mask = mt.Tensor(np.random.default_rng(3).random((50, 30)) < 0.5)
    for f in (
        lambda x, y, m: mt.where((x > 0) & (y < 5) & ~m, x, y),
        lambda x, y, m: x * (x > 0) + (y < x).astype(dtype) * m,
        lambda x, y, m: (m ^ (x > y), (x * 2).astype("bool"), mt.where(m, x > 1, y > 1)),
        lambda x, y, m: mt.where(m.astype(dtype) > 0, x, y) + m,
        lambda x, y, m: (mt.ops.softmax(mt.where(m | (x > 0), (x > 0) * 5.0, -3.0)), ~m),
        lambda x, y, m: mt.ops.logical_or(x, m) & mt.ops.logical_not(y),
    ):
        ops(f, x, y, mask)
    assert len(ops(lambda x, y, m: mt.where((x > 0) & (y < 5) & ~m, x, y), x, y, mask)) == 1
    assert len(ops(lambda x, m: x * (x > 0) + m, x, mask)) == 1
    assert len(ops(lambda m: ~(m & ~m) | m, mask)) == 1


def test_gradients_pass_a_cast():
    x, n = mt.Tensor([0.5, -1.5, 2.0], requires_grad=True), mt.Tensor([1, 2, 3])

    def f(x):
        return mt.grad((n * x).tanh() * n.astype("float32") + (x * 9).astype("int8"), [x], mt.ones(3))[0]

    np.testing.assert_allclose(mt.jit(f)(x).numpy(), f(x).numpy(), rtol=1e-6)


def test_gradients_pass_truth_values():
    x = mt.Tensor([0.5, -1.5, 2.0, 0.0], requires_grad=True)

    def f(x):
        loss = (x * (x > 0) + mt.where((x > 1) | (x < -1), x * x, 0.0)) * (x != 0)
        return mt.grad(loss.sum(), [x])[0]

    np.testing.assert_array_equal(mt.jit(f)(x).numpy(), [1, -3, 5, 0])
    np.testing.assert_array_equal(f(x).numpy(), [1, -3, 5, 0])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_negative_of_a_constant_wraps(dtype):
    least = np.iinfo(dtype).min
    for constant in (1, 2, least):

        def f(n, constant=constant):
            number = mt.full((), constant, dtype=dtype)
            negative = -number
            return n * n, negative, negative < n * n, n - negative

        for n in (0, 1, 3):
            ops(f, mt.Tensor(n).astype(dtype))
