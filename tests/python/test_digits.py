"""Accuracy of half floats, of gradients at large arguments, and of complex numbers at the limits of their range."""

import numpy as np
import pytest

import minitensor as mt

HALVES = ["float16", "bfloat16"]


def leaves(arrays, dtype):
    tensors = [mt.Tensor(a).astype(dtype).detach() for a in arrays]
    for t in tensors:
        t.requires_grad = True
    return tensors


def grad(f, x, cotangent=None):
    (x,) = leaves([x.numpy()], x.dtype)
    y = f(x)
    (g,) = mt.grad([y], [x], [mt.ones(y.shape, dtype=y.dtype) if cotangent is None else cotangent])
    return g


@pytest.mark.parametrize("dtype", HALVES)
def test_a_mean_of_windows_is_rounded_once(dtype):
    x = mt.Tensor([[[256.0, -256.0], [1.0, 0.0]]], dtype=dtype)
    for y in (mt.ops.avg_pool2d(x, 2), mt.ops.adaptive_avg_pool2d(x, 1), mt.ops.avg_pool2d(x, 2, 1)):
        assert y.dtype == x.dtype and y.tolist() == [[[0.25]]]


X = (2, 4, 6)
COMPOSITES = {
    "group_norm": (lambda x, w, b: mt.ops.group_norm(x, w, b, 2), [X, 4, 4]),
    "batch_norm": (lambda x, w, b: mt.ops.batch_norm(x, None, None, w, b), [X, 4, 4]),
    "batch_norm of given": (lambda x, m, w, b: mt.ops.batch_norm(x, m, mt.ones(4, dtype=x.dtype), w, b), [X, 4, 4, 4]),
    "instance_norm": (lambda x, w, b: mt.ops.instance_norm(x, w, b), [X, 4, 4]),
    "conv_transpose1d": (lambda x, w, b: mt.ops.conv_transpose1d(x, w, b), [X, (4, 2, 3), 2]),
    "avg_pool1d": (lambda x: mt.ops.avg_pool1d(x, 3, 2), [X]),
    "avg_pool2d": (lambda x: mt.ops.avg_pool2d(x, 3, 2), [X]),
    "adaptive_avg_pool2d": (lambda x: mt.ops.adaptive_avg_pool2d(x, 2), [X]),
    "mse": (lambda x, y: mt.ops.mse(x, y), [X, X]),
    "std": (lambda x: mt.ops.std(x, 1), [X]),
    "matmul": (lambda x, y: mt.ops.matmul(x, y), [X, (6, 3)]),
    "broadcast": (lambda x, w: x * w, [(500, 3), 3]),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", COMPOSITES)
def test_results_and_gradients_of_halves_are_those_of_single_precision_rounded_once(name, dtype):
    f, shapes = COMPOSITES[name]
    rng = np.random.default_rng(3)
    half = leaves([rng.normal(0.3, 2, shape) for shape in shapes], dtype)
    single = leaves([t.detach().astype("float64").numpy() for t in half], "float32")
    results = []
    for inputs in (half, single):
        y = f(*inputs)
        cotangent = mt.Tensor(np.linspace(0.5, 2, y.numel()).reshape(y.shape), dtype=dtype).astype(y.dtype)
        results.append([y.detach(), *mt.grad([y], inputs, [cotangent])])
    for a, b in zip(*results, strict=True):
        assert a.dtype == half[0].dtype
        np.testing.assert_array_equal(a.astype("float32").numpy(), b.astype(dtype).astype("float32").numpy())


@pytest.mark.parametrize(("dtype", "large"), [("float16", 2048), ("bfloat16", 256)])
def test_the_terms_of_a_gradient_of_halves_add_up_in_single_precision(dtype, large):
    (x,) = leaves([np.ones(3)], dtype)
    within = x * 1
    for at in (x, within):
        (g,) = mt.grad([(at + at + at * large).sum()], [at], retain_graph=True)
        assert g.dtype == x.dtype and g.tolist() == [large + 2] * 3
    seen = []
    within.register_hook(lambda g: seen.append((g.dtype, g.tolist())))
    (within + within + within * large).sum().backward()
    assert seen == [(x.dtype, [large + 2] * 3)] and x.grad.dtype == x.dtype and x.grad.tolist() == [large + 2] * 3


UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "digamma",
    "elu",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "leaky_relu",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_sigmoid",
    "mish",
    "reciprocal",
    "relu",
    "relu6",
    "rsqrt",
    "selu",
    "sigmoid",
    "sin",
    "sinh",
    "softplus",
    "softsign",
    "sqrt",
    "square",
    "swish",
    "tan",
    "tanh",
]
# At a root of the derivative, the error is relative to the terms of the sum.
WITH_ROOTS = {"digamma", "lgamma", "gelu", "mish", "swish"}
# The rounding error of x² carries over to `e^(−x²)`: half a unit of 100 in the exponent.
LOSES = {"erf", "erfc", "gelu"}


@pytest.mark.parametrize("name", UNARY)
def test_gradients_keep_their_digits_over_the_whole_range(name):
    size = np.float32(10) ** np.linspace(-37, 37, 2000).astype("float32")
    fine = np.linspace(-120, 120, 4001).astype("float32")
    x = np.concatenate([size, -size, fine])
    op = getattr(mt.ops, name)
    single = grad(op, mt.Tensor(x)).numpy().astype("float64")
    double = grad(op, mt.Tensor(x.astype("float64"))).numpy()
    kept = np.isfinite(op(mt.Tensor(x.astype("float64"))).numpy()) & np.isfinite(double) & (np.abs(double) < 3e38)
    # Subnormal numbers have fewer digits.
    unit = np.finfo("float32").eps * np.maximum(np.abs(double), np.finfo("float32").tiny)
    if name in WITH_ROOTS:
        unit = np.where(np.abs(x) < 10, np.maximum(unit, np.finfo("float32").eps / 4), unit)
    assert not np.isnan(single[kept]).any()
    error = np.abs(single[kept] - double[kept]) / unit[kept]
    worst = error.argmax()
    assert error[worst] <= (128 if name in LOSES else 64), (x[kept][worst], single[kept][worst], double[kept][worst])


@pytest.mark.parametrize("name", ["swish", "mish", "gelu", "elu", "log_sigmoid", "softplus", "sigmoid"])
def test_tails_are_accurate_among_subnormal_numbers(name):
    x = np.linspace(-104, -80, 3001).astype("float32")
    op = getattr(mt.ops, name)
    single, double = op(mt.Tensor(x)).numpy().astype("float64"), op(mt.Tensor(x.astype("float64"))).numpy()
    unit = np.maximum(np.abs(double) * np.finfo("float32").eps, 2.0**-149)
    assert (np.abs(single - double) / unit).max() <= 8


ENDS = [0.0, 1e-310, 1e-200, 1e-20, 0.3, 1.0, 2.0, 30.0, 400.0, 709.9, 1e20, 1e154, 1e200, 1.7e308]
# NumPy's own complex log1p has few digits near 0.
FUNCTIONS = [
    "sqrt",
    "exp",
    "log",
    "log2",
    "log10",
    "sinh",
    "cosh",
    "tanh",
    "sin",
    "cos",
    "tan",
    "asinh",
    "acosh",
    "atanh",
    "asin",
    "acos",
    "atan",
    "reciprocal",
]
NUMPYS = {name: name.replace("a", "arc", 1) for name in ["asin", "acos", "atan", "asinh", "acosh", "atanh"]}


def numbers_at_the_ends(ends=ENDS):
    parts = np.array([*ends, *(-e for e in ends)])
    return (parts[:, None] + 1j * parts).ravel()


def close(got, expected, tolerance=1e-12):
    with np.errstate(all="ignore"):
        expected = expected.astype("complex128")
        sane = np.isfinite(expected)
        scale = np.maximum(np.abs(expected), 1e-307)
        # Compare quarters, because a difference may overflow.
        near = (np.abs(got - expected) <= tolerance * scale) | (np.abs(got / 4 - expected / 4) <= tolerance * scale / 4)
        return ~sane | near


@pytest.mark.parametrize("name", FUNCTIONS)
def test_complex_functions_are_right_at_the_ends_of_the_range(name):
    z = numbers_at_the_ends()
    if np.finfo(np.longdouble).maxexp < 2000:
        pytest.skip("needs a long double of a wider range")
    with np.errstate(all="ignore"):
        wide = z.astype(np.clongdouble)
        reference = getattr(np, NUMPYS.get(name, name))(wide)
    got = getattr(mt.ops, name)(mt.Tensor(z)).numpy()
    if name in ("sin", "cos", "tan"):
        # Angles beyond this are reduced differently in long double.
        wanted = np.abs(z.real) < 1e5
    elif name in ("exp", "sinh", "cosh", "tanh"):
        wanted = np.abs(z.imag) < 1e5
    else:
        wanted = np.ones(len(z), bool)
    wrong = ~close(got, reference) & wanted
    assert not wrong.any(), list(zip(z[wrong], got[wrong], reference[wrong], strict=True))[:5]


def test_complex_quotients_are_right_at_the_ends_of_the_range():
    if np.finfo(np.longdouble).maxexp < 2000:
        pytest.skip("needs a long double of a wider range")
    z = numbers_at_the_ends([0.0, 1e-310, 1e-200, 1.0, 3.0, 1e200, 1.7e308])
    a, b = (v.ravel() for v in np.meshgrid(z, z))
    a, b = a[b != 0], b[b != 0]
    with np.errstate(all="ignore"):
        expected = a.astype(np.clongdouble) / b.astype(np.clongdouble)
    got = (mt.Tensor(a) / mt.Tensor(b)).numpy()
    wrong = ~close(got, expected)
    assert not wrong.any(), list(zip(a[wrong], b[wrong], got[wrong], expected[wrong], strict=True))[:5]
    huge = mt.Tensor([3e38 + 3e38j], dtype="complex64")
    np.testing.assert_allclose((huge / huge).numpy(), [1], rtol=1e-6)
    with np.errstate(all="ignore"):
        for above, below in [(1 + 1j, 0j), (complex(np.inf, 1), 1 + 1j)]:
            assert np.isinf((mt.Tensor([above]) / mt.Tensor([below])).tolist()[0])
        assert (mt.Tensor([1 + 1j]) / mt.Tensor([complex(np.inf, 0)])).tolist() == [0]


ROWS = {
    "logsumexp": (lambda x: mt.ops.logsumexp(x, -1), 1),
    "logsumexp of all": (lambda x: mt.ops.logsumexp(x), 1),
    "softmax": (lambda x: mt.ops.softmax(x), 1),
    "log_softmax": (lambda x: mt.ops.log_softmax(x), 1),
    "var": (lambda x: mt.ops.var(x, -1), 1),
    "std": (lambda x: mt.ops.std(x, -1), 1),
    "standardize": (lambda x: mt.ops.standardize(x, -1), 1),
    "layer_norm": (lambda x: mt.ops.layer_norm(x), 1),
    "rms_norm": (lambda x: mt.ops.rms_norm(x), 1),
    "cosine_similarity": (lambda x, y: mt.ops.cosine_similarity(x, y), 2),
    "sum": (lambda x: mt.ops.sum(x, -1), 1),
    "prod": (lambda x: mt.ops.prod(x, -1), 1),
    "mean": (lambda x: mt.ops.mean(x, -1), 1),
    "cumsum": (lambda x: mt.ops.cumsum(x, -1), 1),
}


@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (0,)])
@pytest.mark.parametrize("name", ROWS)
def test_empty_rows_have_derivatives_of_any_order(name, shape):
    f, count = ROWS[name]
    inputs = leaves([np.zeros(shape)] * count, "float64")
    outputs = [f(*inputs)]
    for _ in range(2):
        outputs = mt.grad(outputs, inputs, [mt.ones(y.shape, dtype=y.dtype) for y in outputs], create_graph=True)
        assert [g.shape for g in outputs] == [shape] * count
        if not any(g.requires_grad for g in outputs):
            break


@pytest.mark.parametrize("op", ["sqrt", "log", "reciprocal", "cbrt", "rsqrt"])
def test_a_cotangent_of_zero_contributes_nothing_however_steep_the_function(op):
    f = getattr(mt.ops, op)
    (x,) = leaves([np.zeros(3)], "float64")
    y = f(x)
    zero = mt.zeros(3, dtype="float64")
    for create_graph in (False, True):
        (g,) = mt.grad([y], [x], [zero], retain_graph=True, create_graph=create_graph)
        assert g.tolist() == [0, 0, 0]


def test_the_gradient_of_a_complex_product_is_conjugated():
    a = np.array([1 + 2j, 3 - 1j, -2 + 0.5j])
    for x, f in ((a, lambda x: mt.ops.prod(x)), (np.tile(a[:, None], 9), lambda x: mt.ops.prod(x, 0)[0])):
        g = grad(f, mt.Tensor(x)).numpy()
        g = g if g.ndim == 1 else g[:, 0]
        np.testing.assert_allclose(g, np.conj([a[1] * a[2], a[0] * a[2], a[0] * a[1]]))


@pytest.mark.parametrize("channels", [1, 4])
def test_the_weight_gradient_of_a_long_convolution_keeps_its_digits(channels):
    n = 1 << 22
    x = mt.ones((1, channels, n)) * 0.1
    (weight,) = leaves([np.ones((channels, channels, 1))], "float32")
    (g,) = mt.grad([mt.ops.conv1d(x, weight)], [weight], [mt.ones((1, channels, n))])
    np.testing.assert_allclose(g.numpy().astype("float64"), n * float(np.float32(0.1)), rtol=1e-5)
