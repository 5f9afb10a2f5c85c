"""Tests of the promotion of integers and bools to floats, and of the order of arguments."""

import numpy as np
import pytest

import minitensor as mt

WHOLE = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def whole(dtype):
    return mt.asarray(np.array([[1, 0, 3], [2, 5, 1]]).astype(dtype))


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize(
    ("ours", "numpys"),
    [
        (lambda x: x / 2, lambda x: x / 2),
        (lambda x: 2 / x, lambda x: 2 / x),
        (lambda x: x / x, lambda x: x / x),
        (mt.ops.exp, np.exp),
        (mt.ops.sqrt, np.sqrt),
        (mt.ops.tanh, np.tanh),
        (mt.ops.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
        (mt.ops.atan2, None),
        (lambda x: mt.ops.mean(x), np.mean),
        (lambda x: x.mean(1), lambda x: x.mean(1)),
        (lambda x: x.mean(0, keepdims=True), lambda x: x.mean(0, keepdims=True)),
        (lambda x: mt.ops.std(x), np.std),
        (lambda x: x.var(0), lambda x: x.var(0)),
        (lambda x: mt.ops.logsumexp(x, 1), lambda x: np.log(np.exp(x).sum(1))),
        (lambda x: mt.ops.softmax(x, 0), lambda x: np.exp(x) / np.exp(x).sum(0)),
    ],
)
def test_float_functions_promote_integers_to_the_default_dtype(ours, numpys, dtype):
    x = whole(dtype)
    if numpys is None:
        ours, numpys = (lambda x: mt.ops.atan2(x, x)), (lambda x: np.arctan2(x, x))
    with np.errstate(all="ignore"):
        got, expected = ours(x), numpys(np.array(x.tolist()).astype("float64"))
    assert got.dtype == mt.float32
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)


def test_a_float_tensor_determines_the_dtype_next_to_integers():
    x = mt.Tensor([1, 2, 4])
    for dtype in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128"):
        y = mt.ones(3, dtype=dtype)
        assert (x / y).dtype == y.dtype and (y / x).dtype == y.dtype
        assert (x.astype("bool") / y).dtype == y.dtype
    assert (x / 2.0).dtype == mt.float32
    assert mt.ops.hypot(x, mt.ones(3, dtype="float64")).dtype == mt.float64


def test_shapes_and_dtypes_are_inferred_alike():
    x = whole("int32").to("meta")
    assert mt.ops.exp(x).dtype == mt.float32
    assert mt.ops.mean(x, 0).dtype == mt.float32 and mt.ops.mean(x, 0).shape == (3,)


def test_integers_carry_no_gradient():
    x, y = mt.Tensor([1, 2, 4]), mt.Tensor([2.0, 4.0, 8.0], requires_grad=True)
    (x / y).sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), [-0.25, -0.125, -0.0625])
    assert not mt.ops.exp(x).requires_grad


@pytest.mark.parametrize("op", ["exp_", "sqrt_", "divide_", "sigmoid_"])
def test_an_integer_tensor_cannot_be_changed_in_place_by_a_float_op(op):
    x = mt.Tensor([1, 2, 4])
    arguments = [x, x] if op == "divide_" else [x]
    with pytest.raises(
        TypeError, match=f"'{op}'.* changes 'x' in place, but its dtype int64 cannot hold the result of dtype float32"
    ):
        getattr(mt.ops, op)(*arguments)
    with pytest.raises(TypeError, match="in place"):
        x /= 2
    assert x.tolist() == [1, 2, 4]


def test_functions_that_keep_integers_still_do():
    x = mt.Tensor([3, -1, 2])
    for y in (x + x, x * 2, abs(x), x // 2, x % 2, mt.ops.relu(x), mt.ops.clamp(x, 0, 2), x.sum(), x.max(), -x):
        assert y.dtype == mt.int64
    with pytest.raises(TypeError, match="takes integer dtypes, got float32"):
        mt.ops.bitwise_and(mt.ones(3), x)
    with pytest.raises(TypeError, match="'target' takes int64"):
        mt.ops.cross_entropy(mt.ones((2, 3)), mt.ones(2))


@pytest.mark.parametrize("dtype", WHOLE[1:])
def test_powers_of_integers_are_integers(dtype):
    a = np.array([0, 1, 2, 3, 5]).astype(dtype)
    x = mt.asarray(a)
    for y in (x**2, mt.ops.power(x, mt.asarray(np.array([2]).astype(dtype)))):
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(y.numpy(), a**2)
    np.testing.assert_array_equal((2**x).numpy(), 2**a)
    assert (x**0).tolist() == [1] * 5
    assert (x**0.5).dtype == mt.float32 and (x ** mt.ones(5, dtype="float64")).dtype == mt.float64
    if not dtype.startswith("u"):
        base = mt.asarray(np.array([1, -1, 2, -3]).astype(dtype))
        assert (base ** mt.full_like(base, -1)).tolist() == [1, -1, 0, 0]
        for power in (lambda: base**-1, lambda: base.__ipow__(-2), lambda: base ** np.int64(-1)):
            with pytest.raises(
                ValueError, match=r"is a fraction; convert the base first, as in x.astype\(float\) \*\* -"
            ):
                power()
        assert ((x * -1) ** 3).tolist() == [0, -1, -8, -27, -125]
    x **= 2
    assert x.tolist() == [0, 1, 4, 9, 25]


def test_batch_norm_of_integer_statistics_adds_eps():
    x = mt.Tensor([[1, 5], [3, 5]])
    got = mt.ops.batch_norm(x, mt.Tensor([2, 5]), mt.Tensor([0, 0]), eps=0.25)
    np.testing.assert_allclose(got.numpy(), [[-2, 0], [2, 0]])


def test_the_axis_precedes_arguments_that_have_a_default():
    a = np.random.default_rng(0).standard_normal((3, 4))
    x = mt.Tensor(a)
    np.testing.assert_allclose(x.var(0).numpy(), a.var(0))
    np.testing.assert_allclose(x.std(1).numpy(), a.std(1))
    np.testing.assert_allclose(mt.ops.var(x, (0, 1)).numpy(), a.var())
    np.testing.assert_allclose(mt.ops.std(x, 0, 1).numpy(), a.std(0, ddof=1))
    kept = mt.ops.var(x, axis=0, correction=1.0, keepdims=True).numpy()
    np.testing.assert_allclose(kept, a.var(0, ddof=1, keepdims=True))
    np.testing.assert_array_equal(mt.ops.sort(x, 0).values.numpy(), np.sort(a, 0))
    np.testing.assert_array_equal(mt.ops.argsort(x, 0).numpy(), np.argsort(a, 0))
    np.testing.assert_allclose(mt.ops.cosine_similarity(x, x, 0).numpy(), np.ones(4))
    standard = (a - a.mean(0)) / np.sqrt(a.var(0) + 1e-5)
    np.testing.assert_allclose(mt.ops.standardize(x, 0).numpy(), standard)
    np.testing.assert_array_equal(mt.ops.topk(x, 2, 0).values.numpy(), np.sort(a, 0)[:0:-1])


@pytest.mark.parametrize(
    "name", ["var", "std", "sort", "argsort", "cosine_similarity", "standardize", "softmax", "sum"]
)
def test_signatures_have_the_axis_after_the_tensors(name):
    attributes = [a["name"] for a in mt.ops.describe(name)["attributes"]]
    assert attributes[0] == "axis"
    assert getattr(mt.ops, name).__text_signature__.split("axis")[0].count("=") == 0


def test_numbers_out_of_the_range_of_integers_raise():
    x = mt.Tensor([1, 2], dtype="int8")
    for call in (
        lambda: mt.ops.clamp(x, 0, 300),
        lambda: mt.ops.clamp(x, -129, 3),
        lambda: mt.ops.pad(x, [1, 1], 200),
        lambda: mt.ops.pad(x, [1, 1], 0.5),
        lambda: mt.ops.pad(x.astype("uint8"), [1, 1], -1),
        lambda: mt.linspace(0, 1000, 5, dtype="int8"),
        lambda: mt.linspace(-1, 5, 3, dtype="uint8"),
    ):
        with pytest.raises(ValueError, match="u?int8|integer that the dtype"):
            call()
    assert mt.ops.clamp(x, -128, 127).tolist() == [1, 2]
    assert mt.ops.clamp(x, 2).tolist() == [2, 2]
    assert mt.ops.pad(x, [1, 0], -128).tolist() == [-128, 1, 2]
    assert mt.linspace(0, 127, 2, dtype="int8").tolist() == [0, 127]
