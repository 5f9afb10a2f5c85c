"""Integers in graphs: element ops that read or store them as floats are fused, and give the same bits."""

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


def test_arithmetic_of_integers_is_not_that_of_floats():
    n = integers("int32", 40, below=2**31 - 1)
    assert ops(lambda n: (n + n) * 3 - n // 7, n)[0] == "add"


def test_gradients_pass_a_cast():
    x, n = mt.Tensor([0.5, -1.5, 2.0], requires_grad=True), mt.Tensor([1, 2, 3])

    def f(x):
        return mt.grad((n * x).tanh() * n.astype("float32") + (x * 9).astype("int8"), [x], mt.ones(3))[0]

    np.testing.assert_allclose(mt.jit(f)(x).numpy(), f(x).numpy(), rtol=1e-6)
