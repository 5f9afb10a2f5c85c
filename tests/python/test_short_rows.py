"""Rows of few elements, of which machine code computes many as a whole in registers."""

import numpy as np
import pytest

import minitensor as mt

#: More elements than are needed to assemble the machine code for whole rows. Fewer are computed by other loops.
MANY = 1 << 18


def rows(n: int, dtype: str) -> np.ndarray:
    """Rows of ordinary numbers, then some with zeros of either sign, infinities, NaN and equal elements."""
    x = np.random.default_rng(n).standard_normal((9, n)).astype(dtype)
    x[2, n // 2] = np.inf
    x[3, n - 1] = -np.inf if n > 1 else 0
    x[4, 0] = np.nan
    x[5] = -0.0
    x[6] = 3
    x[7, ::2] = 0
    return x


@pytest.fixture(scope="module", autouse=True)
def gated():
    """An op with a row and a number for each row as results."""

    def gated(x, gate, scale: float = 0.5):
        e = (x * scale).exp()
        y = mt.where(x > gate, e, e * x)
        return y / (y.sum() + 1), (y * x).max()

    yield mt.row_op(name="test_short_rows::gated", outputs=["y", "peak"])(gated)
    mt.unregister_custom_op_py("test_short_rows::gated")


OPS = {
    "softmax": lambda x, w, b: mt.ops.softmax(x),
    "log_softmax": lambda x, w, b: mt.ops.log_softmax(x),
    "layer_norm": lambda x, w, b: mt.ops.layer_norm(x, w, b),
    "rms_norm": lambda x, w, b: mt.ops.rms_norm(x, w),
    "logsumexp": lambda x, w, b: mt.ops.logsumexp(x, axis=-1),
    "var": lambda x, w, b: mt.ops.var(x, axis=-1),
    "sum": lambda x, w, b: mt.ops.sum(x, axis=-1),
    "max": lambda x, w, b: mt.ops.max(x, axis=-1),
    "prod": lambda x, w, b: mt.ops.prod(x, axis=-1),
    "y": lambda x, w, b: mt.ops.test_short_rows.gated(x, b)[0],
    "peak": lambda x, w, b: mt.ops.test_short_rows.gated(x, b)[1],
}


def bits(t: mt.Tensor, count: int) -> np.ndarray:
    """The bits of the first rows, where all NaN are alike."""
    x = t.detach().numpy()[:count]
    return np.where(np.isnan(x), np.array(np.nan, x.dtype), x).view(f"u{x.itemsize}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 16, 17, 31, 32, 50, 64, 65, 100, 128, 255, 256, 600, 1000, 1024])
@pytest.mark.parametrize("op", OPS)
def test_the_number_of_rows_changes_no_bit(op, n, dtype):
    few = rows(n, dtype)
    many = np.tile(few, (MANY // (n * len(few)) + 1, 1))
    w, b = (np.random.default_rng(k).standard_normal(n).astype(dtype) for k in (1, 2))
    found = []
    for x in (few, many):
        x = mt.Tensor(x, requires_grad=True)
        y = OPS[op](x, mt.Tensor(w), mt.Tensor(b))
        found.append((y, mt.grad(y, x, mt.Tensor(np.full(y.shape, 0.75, dtype)))[0]))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(bits(b, len(few)), bits(a, len(few)))


@pytest.mark.parametrize("n", [7, 16, 40, 64, 200])
def test_gradients_of_weights_are_sums_over_rows(n):
    x = np.random.default_rng(n).standard_normal((MANY // n, n))
    w, b = np.linspace(0.5, 1.5, n), np.linspace(-1, 1, n)
    g = np.random.default_rng(n + 1).standard_normal(x.shape)
    given = [mt.Tensor(t, requires_grad=True) for t in (x, w, b)]
    dx, dw, db = mt.grad(mt.ops.layer_norm(*given), given, mt.Tensor(g))
    centered = x - x.mean(1, keepdims=True)
    scale = 1 / np.sqrt((centered**2).mean(1, keepdims=True) + 1e-5)
    h = centered * scale
    np.testing.assert_allclose(dw.numpy(), (g * h).sum(0), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(db.numpy(), g.sum(0), rtol=1e-10, atol=1e-9)
    v = g * w
    expected = scale * (v - v.mean(1, keepdims=True) - h * (v * h).mean(1, keepdims=True))
    np.testing.assert_allclose(dx.numpy(), expected, rtol=1e-9, atol=1e-10)
