"""Rows of half floats, which are not converted in memory: the results are those of float32, rounded once."""

import numpy as np
import pytest

import minitensor as mt


@pytest.fixture(scope="module", autouse=True)
def centered():
    """An op with a row and a number for each row as results."""

    def centered(x, shift):
        y = x - x.mean() + shift
        return y, (y * y).mean().sqrt()

    yield mt.row_op(name="test_half_rows::centered")(centered)
    mt.unregister_custom_op_py("test_half_rows::centered")


#: For rows of `n` elements, the shape of a tensor, and a view of it that has these rows.
LAYOUTS = {
    "contiguous": ((3, 5), 0, lambda x: x),
    "a part of each row": ((15,), 5, lambda x: x[:, 2:-3]),
    "every other row": ((30,), 0, lambda x: x[::2]),
    "rows in reverse order": ((15,), 0, lambda x: x[::-1]),
    "reversed rows": ((15,), 0, lambda x: x[:, ::-1]),
    "columns": ((15,), 0, lambda x: x.reshape((x.shape[1], 15)).T),
    "one row": ((1,), 0, lambda x: mt.ops.expand(x, (15, x.shape[1]))),
    "a single row": ((), 0, lambda x: x),
}

OPS = {
    "softmax": lambda x, w: mt.ops.softmax(x, axis=-1),
    "log_softmax": lambda x, w: mt.ops.log_softmax(x, axis=-1),
    "softmax of columns": lambda x, w: mt.ops.softmax(x, axis=0),
    "layer_norm": lambda x, w: mt.ops.layer_norm(x, w, w * 2),
    "rms_norm": lambda x, w: mt.ops.rms_norm(x, w),
    "centered": lambda x, w: mt.ops.test_half_rows.centered(x, w),
    "logsumexp": lambda x, w: mt.ops.logsumexp(x, axis=-1),
}


def bits(result, dtype):
    """The elements of all results in a half dtype."""
    results = result if isinstance(result, (list, tuple)) else [result]
    return [t.astype(dtype).astype("float32").numpy().tobytes() for t in results]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", OPS)
def test_rows_are_computed_in_float32(op, layout, dtype):
    batch, more, view = LAYOUTS[layout]
    rng = np.random.default_rng(0)
    for n in [90, 300, 700, 2100] + [140_000] * (not batch):
        x = mt.Tensor(rng.standard_normal((*batch, n + more))).astype(dtype)
        w = mt.Tensor(rng.standard_normal(n)).astype(dtype)
        half = OPS[op](view(x), w)
        wide = OPS[op](view(x.astype("float32")), w.astype("float32"))
        assert bits(half, dtype) == bits(wide, dtype)
        # Rows of several dtypes.
        mixed = OPS[op](view(x), w.astype("float32"))
        assert bits(mixed, dtype) == bits(wide, dtype)


def test_threads_compute_the_same():
    x = mt.Tensor(np.random.default_rng(0).standard_normal((64, 1000))).astype("bfloat16")
    before = mt.get_num_threads()
    found = []
    try:
        for threads in [1, 2]:
            mt.set_num_threads(threads)
            found.append(bits(mt.ops.softmax(x, axis=-1), "bfloat16"))
    finally:
        mt.set_num_threads(before)
    assert found[0] == found[1]


@pytest.mark.parametrize("n", [1023, 1024])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["exp", "square", "add", "multiply", "divide"])
def test_an_infinite_cotangent_stays_infinite(name, dtype, n):
    op = getattr(mt.ops, name)
    leaves = [mt.ones(n).astype(dtype).requires_grad_() for _ in range(1 if name in ("exp", "square") else 2)]
    gradients = mt.grad(op(*leaves), leaves, mt.full((n,), np.inf).astype(dtype))
    assert all(np.isinf(g.astype("float32").numpy()).all() for g in gradients)


def test_an_infinite_cotangent_of_a_broadcast_column_stays_infinite():
    x, y = mt.ones(300, 300).requires_grad_(), mt.ones(300, 1).requires_grad_()
    assert all(np.isinf(g.numpy()).all() for g in mt.grad(x * y, [x, y], mt.full((300, 300), np.inf)))


def test_the_sign_of_nan_survives_rounding():
    x = mt.Tensor([np.inf, -np.inf, 1])
    for dtype in ["float16", "bfloat16"]:

        def sign(x, dtype=dtype):
            return mt.ops.signbit((x - x).astype(dtype))

        assert sign(x).tolist() == mt.jit(sign)(x).tolist()
