"""Random functions under `mt.jit`, and half floats."""

import random

import numpy as np
import pytest
from jit_checks import assert_same, randn

import minitensor as mt

UNARY = ["exp", "tanh", "sigmoid", "sin", "negative", "square", "relu", "gelu", "softplus", "abs", "swish", "erf"]


KINDS = (
    ["unary"] * 5 + ["binary"] * 6 + ["number", "where", "row", "sum", "matmul", "view", "in place", "compare", "cast"]
)


BINARY = ["add", "multiply", "subtract", "maximum", "minimum", "atan2"]


def random_function(seed, size):
    """A function of `size` random calls."""
    rng = random.Random(seed)
    steps = []
    for _ in range(size):
        kind = rng.choice(KINDS)
        steps.append((kind, rng.choice(UNARY), rng.choice(BINARY), rng.random(), [rng.random() for _ in range(3)]))

    def f(*inputs):
        values = list(inputs)
        for kind, unary, binary, number, where in steps:
            a, b, c = (values[int(w * len(values))] for w in where)
            match kind:
                case "unary":
                    y = getattr(mt.ops, unary)(a)
                case "binary":
                    y = getattr(mt.ops, binary)(a, b)
                case "number":
                    y = a * number + 1
                case "where":
                    y = mt.where(a > b, c, b)
                case "compare":
                    y = mt.where((a > 0) & (b <= c), a, number)
                case "row":
                    y = mt.ops.softmax(a, axis=-1)
                case "sum":
                    y = a - a.mean(axis=0)
                case "matmul":
                    y = (a @ b.T) @ c * 0.1
                case "view":
                    y = a[:, :1] + b[1:2]
                case "cast":
                    y = a.astype(c.dtype) * b
                case _:
                    y = a * 1
                    y[1:] += b[:-1].astype(y.dtype)
                    y[0] *= number
            values.append(mt.ops.clamp(y, -3, 3))
        return values[-3:]

    return f


@pytest.mark.parametrize("dtypes", ["float32", "bfloat16", "float16", "float32 bfloat16 float16"])
@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_agree(seed, dtypes):
    f = random_function(seed, 200)
    dtypes = (dtypes.split() * 3)[:3]
    inputs = [(randn(5, 6 - i % 1) + i).astype(dtype) for i, dtype in enumerate(dtypes)]

    def loss(*inputs):
        leaves = [t.detach().clone().requires_grad_() for t in inputs]
        results = f(*leaves)
        return results, mt.grad(sum(t.sum() for t in results), leaves, allow_unused=True)

    assert_same(f, inputs, [t * 0.5 for t in inputs], graphs=1)
    assert_same(loss, inputs, [t * 0.5 for t in inputs], graphs=1)

    def through(f, inputs):
        leaves = [t.detach().clone().requires_grad_() for t in inputs]
        results = [t for t in f(*leaves) if t.requires_grad]
        return results, mt.grad(sum(t.sum() for t in results), leaves, allow_unused=True) if results else ()

    jitted = mt.jit(f)
    for _ in range(2):
        _, got = through(jitted, inputs)
        _, expected = through(f, inputs)
        for a, b in zip(got, expected, strict=True):
            assert (a is None) == (b is None) or not (a if b is None else b).any()
            if a is not None and b is not None:
                # Terms of a gradient are added in another order.
                a, b = a.astype("float32").numpy(), b.astype("float32").numpy()
                np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-5)


def test_casts_and_half_floats_are_fused():
    def step(w, g, mask):
        updated = w.astype("float32") - 0.01 * g
        return mt.where(mask, updated, 0).astype("bfloat16"), updated.astype("float16") * 2

    w, g = randn(4, 300).astype("bfloat16"), randn(4, 300)
    jitted = assert_same(step, (w, g, g > 0), (w * 2, -g, g < 0), graphs=1)
    assert len(jitted.graphs[0].ops) == 1
    # float64 is computed in another dtype.
    assert len(assert_same(lambda x: (x * 2).astype("float64") * 3, (w,)).graphs[0].ops) == 3


def test_a_table_of_half_floats_is_an_argument():
    table, index = randn(5, 3).astype("float16"), mt.Tensor([[1, 2], [4, 0]])
    assert_same(lambda t, i: mt.ops.embedding(t, i) * 2, (table, index), (table + 1, index), graphs=1)
