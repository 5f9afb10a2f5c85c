"""`mt.row_op`: results, gradients, shapes and errors, compared with NumPy and with ops written in Rust."""

from __future__ import annotations

import contextlib
import re

import numpy as np
import pytest

import minitensor as mt

pytestmark = pytest.mark.usefixtures("registered")

RANDOM = np.random.default_rng(7)
X = RANDOM.standard_normal((3, 5, 7))
Y = RANDOM.standard_normal((5, 7))


def softmax(x):
    """`eˣ / Σ eˣ`."""
    e = (x - x.max()).exp()
    return e / e.sum()


def rms_norm(x, weight, eps: float = 1e-6):
    """`x` divided by the root of its mean square."""
    return x / ((x * x).mean() + eps).sqrt() * weight


def test_an_op_is_like_one_written_in_rust():
    op = mt.row_op(name="rows::softmax", axis=-1)(softmax)
    assert op is mt.ops.rows.softmax and "`eˣ / Σ eˣ`" in op.__doc__
    np.testing.assert_allclose(op(mt.Tensor(X)), mt.ops.softmax(mt.Tensor(X)), rtol=1e-14)
    np.testing.assert_allclose(op(mt.Tensor(X), axis=1), mt.ops.softmax(mt.Tensor(X), axis=1), rtol=1e-14)
    described = mt.ops.describe("rows::softmax")
    assert described["program"] == "%0 = exp(x - max(x))\nout = %0 / sum(%0)"
    assert described["location"].startswith(__file__)
    mt.testing.opcheck("rows::softmax")


def test_attributes_conditions_and_broadcast_rows():
    op = mt.row_op(name="rows::rms_norm", where="eps >= 0")(rms_norm)
    w = RANDOM.standard_normal(7)
    wanted = X / np.sqrt((X * X).mean(-1, keepdims=True) + 0.5) * w
    np.testing.assert_allclose(op(mt.Tensor(X), mt.Tensor(w), eps=0.5), wanted, rtol=1e-14)
    with pytest.raises(ValueError, match=r"op 'rows::rms_norm' needs eps >= 0, got eps = -1"):
        op(mt.Tensor(X), mt.Tensor(w), eps=-1.0)
    with pytest.raises(ValueError, match="dimension n"):
        op(mt.Tensor(X), mt.Tensor(w[:3]))
    mt.testing.opcheck("rows::rms_norm")


def test_derivatives_of_any_order_are_those_of_the_op_in_rust():
    op = mt.row_op(name="rows::softmax")(softmax)
    results = []
    for f in (op, mt.ops.softmax):
        x = mt.Tensor(X, requires_grad=True)
        y, parts = (f(x) * mt.Tensor(Y)).sum(), []
        for k in range(3):
            (y,) = mt.grad((y * mt.Tensor(np.cos(X + k))).sum() if k else y, x, create_graph=True)
            parts.append(np.asarray(y.detach()))
        results.append(parts)
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def shifted(x, places):
    zeros = np.zeros((*x.shape[:-1], abs(places)))
    return np.concatenate([zeros, x[..., :-places]] if places > 0 else [x[..., -places:], zeros], -1)


def recurrence(x, a):
    x, a = np.broadcast_arrays(x, a)
    h = np.zeros_like(x)
    for i in range(x.shape[-1]):
        h[..., i] = x[..., i] + (a[..., i] * h[..., i - 1] if i else 0)
    return h


def scanned(step, *rows):
    rows = [np.moveaxis(row, -1, 0) for row in np.broadcast_arrays(*rows)]
    results = [tuple(row[0] for row in rows)]
    for elements in zip(*(row[1:] for row in rows), strict=True):
        results.append(step(results[-1], elements))
    return [np.moveaxis(np.array(row), 0, -1) for row in zip(*results, strict=True)]


def bins(x, at):
    x, at = np.broadcast_arrays(x, at.astype(int))
    rows = zip(x.reshape(-1, 7), at.reshape(-1, 7), strict=True)
    return np.reshape([np.bincount(a[a < a.size], v[a < a.size], a.size) for v, a in rows], x.shape)


#: Functions with their twins of NumPy.
TWINS = {
    "sum": (lambda x, y: x * y.sum(), lambda x, y: x * y.sum(-1, keepdims=True)),
    "mean": (lambda x, y: x - y.mean(), lambda x, y: x - y.mean(-1, keepdims=True)),
    "prod": (lambda x, y: x * y.prod(), lambda x, y: x * y.prod(-1, keepdims=True)),
    "extremes": (
        lambda x, y: (x.max() - x) * (x - x.min()) + y,
        lambda x, y: (x.max(-1, keepdims=True) - x) * (x - x.min(-1, keepdims=True)) + y,
    ),
    "deviations": (lambda x, y: x.var() + y.std(correction=1), lambda x, y: x.var(-1) + y.std(-1, ddof=1)),
    "logsumexp": (
        lambda x, y: x - mt.ops.logsumexp(x + y),
        lambda x, y: x - np.log(np.exp(x + y).sum(-1, keepdims=True)),
    ),
    "dot": (lambda x, y: x.dot(y), lambda x, y: (x * y).sum(-1)),
    "running": (
        lambda x, y: x.cumsum() * y.reverse_cumsum(),
        lambda x, y: np.cumsum(x, -1) * np.cumsum(y[..., ::-1], -1)[..., ::-1],
    ),
    "running extremes": (
        lambda x, y: x.cummax() * y.cummin(),
        lambda x, y: np.maximum.accumulate(x, -1) * np.minimum.accumulate(y, -1),
    ),
    "running products": (lambda x, y: x.cumprod() - y, lambda x, y: np.cumprod(x, -1) - y),
    "shifts": (
        lambda x, y: x - x.shift(1) + y.shift(-2),
        lambda x, y: x - shifted(x, 1) + shifted(y, -2),
    ),
    "reverse": (lambda x, y: x * y.reverse(), lambda x, y: x * y[..., ::-1]),
    "recurrence": (lambda x, y: x.recurrence(y / 2), lambda x, y: recurrence(x, y / 2)),
    "reverse recurrence": (
        lambda x, y: x.reverse_recurrence(y / 2),
        lambda x, y: recurrence(x[..., ::-1], y[..., ::-1] / 2)[..., ::-1],
    ),
    "scan": (
        lambda x, y: x.scan(lambda before, x: mt.ops.tanh(before * y + x) - 0.5),
        lambda x, y: scanned(lambda h, xy: (np.tanh(h[0] * xy[1] + xy[0]) - 0.5, xy[1]), x, y)[0],
    ),
    "scan of two rows": (
        lambda x, y: mt.ops.multiply(*x.scan(lambda h, x: (h[0] * 0.5 + x[1], x[0] - mt.ops.sin(h[0] + h[1])), y)),
        lambda x, y: np.multiply(
            *scanned(lambda h, x: (h[0] * 0.5 + x[1], x[0] - np.sin(h[0] + h[1])), x, y),
        ),
    ),
    "scan with other values": (
        lambda x, y: x.scan(lambda before, x: mt.where(y > 0, before, before / 2) + x * x.position() - y.mean()),
        lambda x, y: scanned(
            lambda h, v: (np.where(v[1] > 0, h[0], h[0] / 2) + v[0] * v[2] - v[3], v[1], v[2], v[3]),
            *(x, y, np.arange(7.0), y.mean(-1, keepdims=True)),
        )[0],
    ),
    "sorting": (
        lambda x, y: x.sort() + x.take(y.argsort()),
        lambda x, y: np.sort(x, -1) + np.take_along_axis(*np.broadcast_arrays(x, np.argsort(y, -1)), -1),
    ),
    "bins": (lambda x, y: x.put(mt.ops.floor(mt.ops.abs(y) * 3)) + y, lambda x, y: bins(x, np.abs(y) * 3) + y),
    "count": (lambda x, y: x.position() / x.count() * y, lambda x, y: np.arange(7) / 7 * y + 0 * x),
    "conditions": (
        lambda x, y: mt.where((x > y).any() & ~(x > 3).all(), x, y),
        lambda x, y: np.where(((x > y).any(-1) & ~(x > 3).all(-1))[..., None], x, y),
    ),
    "functions": (
        lambda x, y: mt.exp(x).sum().log() * y.tanh(),
        lambda x, y: np.log(np.exp(x).sum(-1, keepdims=True)) * np.tanh(y),
    ),
    "ops": (
        lambda x, y: mt.ops.softmax(x) * mt.ops.sum(y, axis=-1),
        lambda x, y: np.exp(x) / np.exp(x).sum(-1, keepdims=True) * y.sum(-1, keepdims=True),
    ),
    "no reduction": (lambda x, y: x * y + 1, lambda x, y: x * y + 1),
}


@pytest.mark.parametrize("name", TWINS)
def test_functions(name):
    ours, theirs = TWINS[name]
    op = mt.row_op(name=f"rows::f_{name.replace(' ', '_')}")(ours)
    np.testing.assert_allclose(op(mt.Tensor(X), mt.Tensor(Y)), theirs(X, Y), rtol=1e-12, atol=1e-13)
    x, y = mt.Tensor(X, requires_grad=True), mt.Tensor(Y, requires_grad=True)
    mt.testing.gradcheck(lambda x, y: op(x, y), (x, y))
    np.testing.assert_allclose(
        op(mt.Tensor(X, dtype="float32"), mt.Tensor(Y, dtype="float32")), theirs(X, Y), rtol=1e-3, atol=1e-4
    )
    for dtype in ("float16", "bfloat16"):
        assert op(mt.Tensor(X, dtype=dtype), mt.Tensor(Y, dtype=dtype)).dtype == dtype
    mt.testing.opcheck(f"rows::f_{name.replace(' ', '_')}")


def test_a_scan_of_integers():
    op = mt.row_op(name="rows::wrapped")(lambda x: x.scan(lambda before, x: (before + x) & 7))
    x = RANDOM.integers(-50, 50, (30, 9))
    expected = scanned(lambda h, x: ((h[0] + x[0]) & 7,), x)[0]
    for dtype in ("int8", "int64"):
        np.testing.assert_array_equal(op(mt.Tensor(x, dtype=dtype)), expected)


def test_wrong_steps():
    kept = []
    for body, message in {
        (lambda x: x.scan(x)): "'scan' takes a function of the result before and the next element, got Element",
        (lambda x: x.scan(lambda h, x: None)): "the step of 'scan' must return 1 elements, got nothing",
        (lambda x: x.scan(lambda h, x: h[0] + x[0], x)): "the step of 'scan' must return 2 elements, got 1 elements",
        (lambda x: x.scan(lambda h, x: h > x)): "'scan' takes numbers, got a condition",
        (lambda x: x.scan(lambda h, x: h + x.sum())): "computes single elements, but calls 'sum'",
        (lambda x: x.scan(lambda h, x: h + x.scan(lambda h, x: h + x))): "computes single elements, but calls 'scan'",
        (lambda x: x.scan(lambda h, x: kept.append(h) or x) + kept[0]): "an element of a step of 'scan' was kept",
    }.items():
        op = mt.row_op(name="rows::wrong_step")
        with pytest.raises(TypeError, match=re.escape(message)):
            op(body)(mt.Tensor(X))
        with contextlib.suppress(KeyError, ValueError):
            mt.unregister_custom_op_py("rows::wrong_step")
    with pytest.raises(AttributeError, match="an element has no neighbours"):
        mt.element_op(name="rows::scan_of_an_element")(lambda x: x.scan(lambda h, x: h + x))


def test_indices_of_extremes():
    @mt.row_op(name="rows::where_extreme", outputs=["top", "bottom"])
    def where_extreme(x):
        return x.argmax(), x.argmin()

    top, bottom = where_extreme(mt.Tensor(X))
    np.testing.assert_array_equal(top, X.argmax(-1))
    np.testing.assert_array_equal(bottom, X.argmin(-1))


def test_a_condition_per_row():
    op = mt.row_op(name="rows::is_any")(lambda x: (x > 1).any())
    assert op(mt.Tensor(X)).dtype == mt.bool
    np.testing.assert_array_equal(op(mt.Tensor(X)), (X > 1).any(-1))
    mt.testing.opcheck("rows::is_any")


def test_a_number_per_row_and_a_shared_row():
    clause = "(x: [.., n], t: [..], weight: [n]) -> [.., n]"

    @mt.row_op(name="rows::tempered", shape=clause)
    def tempered(x, t, weight):
        e = ((x - x.max()) / t).exp() * weight
        return e / e.sum()

    t, w = np.abs(RANDOM.standard_normal((3, 5))) + 0.5, np.abs(RANDOM.standard_normal(7))
    e = np.exp((X - X.max(-1, keepdims=True)) / t[..., None]) * w
    args = [mt.Tensor(a, requires_grad=True) for a in (X, t, w)]
    np.testing.assert_allclose(tempered(*args).detach(), e / e.sum(-1, keepdims=True), rtol=1e-13)
    mt.testing.gradcheck(tempered, args)
    (tempered(*args) * mt.Tensor(X)).sum().backward()
    assert [a.grad.shape for a in args] == [(3, 5, 7), (3, 5), (7,)]
    mt.testing.opcheck("rows::tempered")


@pytest.mark.parametrize("rows", [1, 2, 33, 700])
@pytest.mark.parametrize("n", [0, 1, 3, 8, 100, 1000, 2049, 5000])
def test_sizes(rows, n):
    op = mt.row_op(name="rows::softmax")(softmax)
    if rows * n > 200_000:
        pytest.skip("large")
    x = RANDOM.standard_normal((rows, n)).astype(np.float32)
    wanted = np.exp(x.astype(np.float64))
    wanted /= wanted.sum(-1, keepdims=True)
    for t in (mt.Tensor(x), mt.Tensor(x.T.copy()).T, mt.Tensor(np.repeat(x, 2, axis=0))[::2]):
        np.testing.assert_allclose(op(t), wanted, rtol=1e-5, atol=1e-7)
    assert op(mt.Tensor(x, device="cpu")).shape == (rows, n)


def test_an_element_of_the_row():
    @mt.row_op(name="rows::chosen", shape="(x: [.., n], index: [..]) -> [..]")
    def chosen(x, index):
        return x.at(index)

    index = RANDOM.integers(0, 7, (3, 5))
    x = mt.Tensor(X, requires_grad=True)
    y = chosen(x, mt.Tensor(index, dtype="float64"))
    np.testing.assert_array_equal(y.detach(), np.take_along_axis(X, index[..., None], -1)[..., 0])
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, np.arange(7) == index[..., None])
    for outside in (-1.0, 7.0, 1.5, np.nan):
        assert np.isnan(chosen(mt.Tensor(X), mt.Tensor(outside, dtype="float64"))).all()


def test_axes():
    @mt.row_op(name="rows::centered", axis=None)
    def centered(x):
        return x - x.mean()

    @mt.row_op(name="rows::spread", axis=-1)
    def spread(x):
        return x.max() - x.min()

    np.testing.assert_allclose(centered(mt.Tensor(X)), X - X.mean(), atol=1e-15)
    np.testing.assert_allclose(centered(mt.Tensor(X), axis=(0, 2)), X - X.mean((0, 2), keepdims=True), atol=1e-15)
    np.testing.assert_allclose(spread(mt.Tensor(X), axis=1), np.ptp(X, axis=1))
    assert spread(mt.Tensor(X), axis=0, keepdims=True).shape == (1, 5, 7)
    x = mt.Tensor(X, requires_grad=True)
    mt.testing.gradcheck(lambda x: spread(x, axis=1), (x,))
    mt.testing.gradcheck(lambda x: centered(x, axis=(0, 1)), (x,))
    mt.testing.opcheck("rows::centered")
    mt.testing.opcheck("rows::spread")


def test_in_graphs():
    op = mt.row_op(name="rows::softmax")(softmax)
    x = mt.Tensor(X, requires_grad=True)
    y = mt.Tensor(Y)
    f = mt.jit(lambda x: (op(x * 2) * y).sum())
    (grad,) = mt.grad(f(x), x)
    (wanted,) = mt.grad((op(x * 2) * y).sum(), x)
    np.testing.assert_array_equal(np.asarray(grad), np.asarray(wanted))


def test_a_row_op_calls_others():
    mt.row_op(name="rows::softmax")(softmax)
    op = mt.row_op(name="rows::entropy")(lambda x: -(mt.ops.rows.softmax(x) * x).sum())
    p = np.exp(X) / np.exp(X).sum(-1, keepdims=True)
    np.testing.assert_allclose(op(mt.Tensor(X)), -(p * X).sum(-1), rtol=1e-13)


#: Wrong definitions, with the error.
WRONG = {
    "condition": (lambda x: x if x.sum() > 0 else -x, TypeError, "cannot depend on a row.*use mt.ops.where"),
    "axis": (lambda x: x.sum(-1), TypeError, "'sum' works along the row and takes no axis"),
    "another axis": (
        lambda x: x.sum(axis=0),
        ValueError,
        r"leave out the axis, and choose the axis of the op with mt.row_op\(axis=…\)",
    ),
    "softmax over another axis": (
        lambda x: mt.ops.softmax(x, axis=0),
        ValueError,
        "'softmax' works along the row here, got axis=0",
    ),
    "keyword": (lambda x: x.sum(dtype=mt.float64), TypeError, "'sum' of a row takes x, got 'dtype'"),
    "no index": (lambda x: x.at(), TypeError, "'at' of a row lacks the argument 'index'"),
    "index": (lambda x: x.at(x), TypeError, "'index' of 'at' must be one number for the row, got a row"),
    "two indices": (
        lambda x: x.put(x, x),
        TypeError,
        "'put' works along the row and takes no axis; it takes only index",
    ),
    "no places": (lambda x: x.shift(), TypeError, "'shift' takes the number of places as an int, got NoneType"),
    "positional correction": (lambda x: x.var(1), TypeError, "'var' works along the row and takes no axis"),
    "sort": (lambda x: mt.ops.sort(x)[0], TypeError, r"cannot call the op 'sort', but the method x.sort\(…\) of a row"),
    "places of a shift": (lambda x: x.shift(1.5), TypeError, "'shift' takes the number of places as an int, got float"),
    "a shift by a row": (lambda x: x.shift(x), TypeError, "'shift' takes the number of places as an int, got Element"),
    "positions of a condition": (lambda x: x.take(x > 0), TypeError, "takes numbers, got a condition"),
    "matmul": (lambda x: x @ x, TypeError, "'@' is not defined for a row; use x.dot"),
    "positions": (
        lambda x: mt.ops.row.cross_entropy(x, 0.0),
        TypeError,
        r"'row::cross_entropy' takes positions in the row, 'target'; use x.at\(target\)",
    ),
    "tensor": (lambda x: x + mt.ones(3), TypeError, "a row op cannot use a Tensor"),
    "indexing": (lambda x: x[0], TypeError, r"a row has no value while the op is defined; use x.at\(index\) for one"),
    "length": (lambda x: x / len(x), TypeError, r"use x.count\(\) for the length"),
    "iteration": (lambda x: x / sum(x), TypeError, r"use reductions, such as x.sum\(\)"),
    "unknown reduction": (
        lambda x: x.median(),
        AttributeError,
        r"there is no function 'median' of rows; see help\(mt.row_op\); did you mean 'mean'",
    ),
    "misspelled": (lambda x: x.cumsm(), AttributeError, "did you mean 'cumsum'"),
    "only of tensors": (
        lambda x: x - x.topk(2),
        TypeError,
        "'topk', which is not computed along rows; call it in an op of whole tensors, with mt.custom_op",
    ),
    "attribute of tensors": (lambda x: x / x.size, AttributeError, "'size' is an attribute of tensors, not of rows"),
    "list": (lambda x: mt.ops.concat([x, x]), TypeError, "cannot call 'concat', which is not computed along rows"),
    "ufunc": (lambda x: np.tanh(x), TypeError, r"NumPy's 'tanh' cannot compute a row.*; write x.tanh\(\)"),
    "function of NumPy": (lambda x: np.median(x), TypeError, "NumPy's 'median' cannot compute a row"),
    "array": (lambda x: np.asarray(x), TypeError, "a row cannot become an array"),
    "nothing": (lambda x: None, TypeError, "the function returned nothing"),
    "integers and fractions": (
        lambda x: (x.sum() & 1) * 0.5,
        ValueError,
        "neither floating nor integer dtypes support all functions and constants of its program",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_definitions(name):
    function, kind, message = WRONG[name]
    with pytest.raises(kind, match=message):
        mt.row_op(name="rows::wrong")(function)
    assert "rows::wrong" not in mt.list_custom_ops_py()


def test_wrong_clauses():
    def define(function=lambda x, t: x * t, **clauses):
        mt.row_op(name="rows::wrong", **clauses)(function)

    with pytest.raises(ValueError, match="expected at least one input that is a row"):
        define(shape="(x: [..], t: [..]) -> [..]")
    differs = r"output 'out' is a number for each row, but differs along a row; reduce it.*or declare it.*\[.., n\]"
    with pytest.raises(ValueError, match=differs):
        define(shape="(x: [.., n], t: [..]) -> [..]")
    with pytest.raises(ValueError, match=r"expected \[.., n\], \[n\] or \[..\] for 't', with one n for all"):
        define(shape="(x: [.., n], t: [.., m]) -> [.., n]")
    with pytest.raises(ValueError, match="there is no input 'y'"):
        define(shape="(x: [.., n], y: [..]) -> [.., n]")
    with pytest.raises(TypeError, match="shape must be a text such as"):
        define(shape=["n"])
    with pytest.raises(TypeError, match="axis must be an int, or None for all axes, got str"):
        define(axis="last")
    with pytest.raises(TypeError, match="row_op takes a function, got str"):
        mt.row_op("softmax")


def test_functions_of_numpy_that_call_methods():
    op = mt.row_op(name="rows::of_numpy")(lambda x: np.where(x > np.mean(x), np.clip(x, -1, 1), np.max(x)))
    expected = np.where(X.mean(-1, keepdims=True) < X, np.clip(X, -1, 1), X.max(-1, keepdims=True))
    np.testing.assert_allclose(op(mt.Tensor(X)), expected, rtol=1e-13)


def test_opcheck_finds_a_nan_that_is_lost():
    def lossy(x):
        m = x - x.mean()
        return mt.where(m > 0, m, 0.0)

    mt.row_op(name="rows::lossy", shape="(x: [.., n]) -> [.., n]")(lossy)
    (finding,) = mt.testing.opcheck("rows::lossy", raises=False).findings
    assert finding.check == "special values" and "a NaN in 'x' does not propagate" in finding.message
    mt.row_op(name="rows::replacing")(lambda x: mt.where(x.isnan(), 0.0, x) - mt.where(x == x, x, 1.0).mean())
    mt.testing.opcheck("rows::replacing")


def test_opcheck_takes_detached_values_as_constants():
    @mt.row_op(name="rows::quantized", where="levels >= 1")
    def quantized(x, levels: float = 4.0):
        scale = x.abs().max().detach() / levels
        return x + (mt.ops.round(x / scale) * scale - x).detach()

    mt.testing.opcheck(quantized)


def test_truth_values_of_elements():
    @mt.row_op(name="test_row_op::above")
    def above(x):
        return x > x.mean(), x - x.mean()

    x = mt.randn(4, 5, requires_grad=True)
    mask, centered = above(x)
    np.testing.assert_array_equal(mask.numpy(), centered.detach().numpy() > 0)
    assert mask.dtype == mt.bool
    (gradient,) = mt.grad((centered * centered).sum(), [x])
    np.testing.assert_allclose(gradient.numpy(), 2 * centered.detach().numpy(), atol=1e-6)
    mt.testing.opcheck(above)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_decide_as_the_function(dtype):
    """The gradient of `sigmoid` also has another formula for its value."""

    @mt.row_op(name="test_row_op::winner")
    def winner(x):
        p = x.sigmoid()
        return mt.where(p == p.max(), 3 * x, 0.0)

    @mt.row_op(name="test_row_op::least")
    def least(x):
        return x.sigmoid().min()

    x = mt.Tensor(np.random.default_rng(0).standard_normal((500, 8)) + 1, dtype=dtype, requires_grad=True)
    y = winner(x)
    (gradient,) = mt.grad(y.sum(), [x])
    np.testing.assert_array_equal(gradient.numpy() == 3, y.detach().numpy() != 0)
    (gradient,) = mt.grad(least(x).sum(), [x])
    values = x.detach().numpy()
    np.testing.assert_array_equal(gradient.numpy() != 0, values == values.min(axis=-1, keepdims=True))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_rows_of_integers(dtype):
    @mt.row_op(name="rows::of_integers", outputs=["changed", "odd", "top"])
    def of_integers(x):
        """The bits that change, the number of odd elements so far, and the position of the largest."""
        return x ^ x.shift(1), (x & 1).cumsum(), (x | 1).argmax()

    info = np.iinfo(dtype)
    x = np.random.default_rng(5).integers(info.min, info.max, (4, 100), dtype=dtype, endpoint=True)
    changed, odd, top = of_integers(mt.Tensor(x))
    before = np.concatenate([np.zeros((4, 1), dtype), x[:, :-1]], 1)
    np.testing.assert_array_equal(changed.numpy(), x ^ before)
    np.testing.assert_array_equal(odd.numpy(), np.cumsum(x & 1, 1, dtype=dtype))
    np.testing.assert_array_equal(top.numpy(), np.argmax(x | 1, 1).astype(dtype))
    assert mt.testing.opcheck(of_integers).findings == []
    with pytest.raises(TypeError, match="'x' takes integer dtypes, got float32"):
        of_integers(mt.ones(2, 3))
