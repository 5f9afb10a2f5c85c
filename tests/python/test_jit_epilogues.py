"""Products and convolutions in graphs: the element op after one is part of its call, and gives the same bits."""

import random

import numpy as np
import pytest
from jit_checks import bits

import minitensor as mt

PRODUCT, CONVOLUTION = "linalg::matrix_product", "convolution::forward"


def array(*shape, dtype="float32", seed=0):
    return mt.Tensor(np.random.default_rng([seed, *shape]).standard_normal(shape)).astype(dtype)


def joined(f, *args):
    """Returns the ops of the graph, which gives the bits of the function."""
    jitted = mt.jit(f)
    for _ in range(2):
        assert bits(jitted(*args)) == bits(f(*args))
    return jitted.graphs[0].ops


EPILOGUES = {
    "relu": lambda y, v, r, m: mt.ops.relu(y),
    "bias, gelu": lambda y, v, r, m: mt.ops.gelu(y + v),
    "residual": lambda y, v, r, m: y * 2.0 + r,
    "rows": lambda y, v, r, m: y * r[..., :1] + v,
    "mask": lambda y, v, r, m: mt.where(m, y, -1.0),
    "comparison": lambda y, v, r, m: y > r,
    "twice": lambda y, v, r, m: y * (y + 1),
    "two results": lambda y, v, r, m: (z := y + v, mt.ops.tanh(z) * r),
    "number": lambda y, v, r, m: 1 / (y * y + 0.5),
}
SHAPES = [
    ((40, 30), (30, 50)),
    ((128, 16), (16, 256)),
    ((300, 700), (700, 90)),
    ((3, 40, 30), (30, 50)),
    ((2, 3, 17, 30), (2, 3, 30, 20)),
    ((2, 1, 17, 30), (3, 30, 140)),
    ((5, 3000), (3000, 7)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", EPILOGUES)
def test_element_ops_after_a_product_are_part_of_it(name, shapes, dtype):
    x, y = (array(*shape, dtype=dtype) for shape in shapes)
    z = x @ y
    others = array(z.shape[-1], dtype=dtype), array(*z.shape, dtype=dtype), array(*z.shape[-2:]) > 0
    ops = joined(lambda *args: EPILOGUES[name](x @ y, *args), *others)
    assert ops[-1].startswith(f"fused({PRODUCT}, ") and PRODUCT not in ops


IMAGES = {
    "3×3": ((2, 5, 20, 18), (7, 5, 3, 3), {"padding": 1}),
    "1×1": ((2, 8, 40, 40), (20, 8, 1, 1), {}),
    "by channel": ((2, 6, 19, 21), (6, 1, 3, 3), {"padding": 1, "groups": 6}),
    "strides": ((1, 3, 33, 31), (16, 3, 3, 3), {"stride": 2, "dilation": 2}),
    "many samples": ((9, 40, 7, 7), (60, 40, 3, 3), {"padding": 1}),
    "one window": ((3, 4, 3, 3), (5, 4, 3, 3), {}),
    "many parts": ((1, 3, 150, 150), (40, 3, 3, 3), {"padding": 1}),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("name", IMAGES)
def test_element_ops_after_a_convolution_are_part_of_it(name, has_bias, dtype):
    of_x, of_w, options = IMAGES[name]
    x, w = array(*of_x, dtype=dtype), array(*of_w, dtype=dtype)
    b = array(of_w[0], dtype=dtype) if has_bias else None
    scale, r = array(of_w[0], 1, 1, dtype=dtype), array(*mt.ops.conv2d(x, w, **options).shape, dtype=dtype)
    for then in (
        lambda y: mt.ops.relu(y),
        lambda y: mt.ops.silu(y * scale + r),
        lambda y: mt.where(r > 0, y, scale),
    ):
        ops = joined(lambda x, w, then=then: then(mt.ops.conv2d(x, w, b, **options)), x, w)
        assert ops[-1].startswith(f"fused({CONVOLUTION}, ") and CONVOLUTION not in ops


def test_layouts_that_cannot_be_read_in_parts_give_the_same_bits():
    x, y = array(60, 40), array(40, 60)
    for r in (array(60, 60).T, array(60, 120)[:, ::2], array(60, 60).astype("float16"), array(60, 1)):
        joined(lambda r: mt.ops.tanh(x @ y + r), r)
        joined(lambda r: mt.ops.tanh(y.T @ x.T + r), r)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_floats_are_rounded_as_by_separate_calls(dtype):
    x, y, r = array(60, 40), array(40, 64), array(60, 64, dtype=dtype)
    ops = joined(lambda r: (mt.ops.tanh(x @ y + 1).astype(dtype) * r + 1) * 3, r)
    assert ops == [f"fused({PRODUCT}, add, tanh, astype, multiply, add, multiply)"]
    assert PRODUCT in joined(lambda r: mt.ops.tanh(r @ r.T + 1), r)


OTHERS = ["int8", "uint8", "int32", "int64", "bool", "float16", "bfloat16", "float32", "float64", "complex64"]
WITH_OTHERS = {
    "product": lambda y, n: y * n,
    "product, sum": lambda y, n: y * n + 1,
    "sum": lambda y, n: n + y,
    "sum of two": lambda y, n: n * 2 + y,
    "stored": lambda y, n: (y * 10).astype(n.dtype),
    "stored, sum": lambda y, n: (y * 10 + n.astype(y.dtype)).astype(n.dtype),
}
LAYOUTS = {
    "contiguous": lambda n: n,
    "transposed": lambda n: n.T.copy().T,
    "every other column": lambda n: mt.ops.concat([n, n], -1)[:, ::2],
    "columns reversed": lambda n: n[:, ::-1],
    "rows reversed": lambda n: n[::-1],
    "column": lambda n: n[:, :1],
    "row": lambda n: n[0],
    "number": lambda n: n[0, 0],
}


@pytest.mark.parametrize("dtype", OTHERS)
@pytest.mark.parametrize("own", ["float32", "float64"])
def test_tensors_of_all_dtypes_and_layouts_beside_a_product(own, dtype):
    x, y, image, weight = (array(*s, dtype=own) for s in ((40, 30), (30, 50), (1, 3, 9, 9), (40, 3, 2, 2)))
    others = mt.Tensor(np.random.default_rng(1).integers(0, 9, (40, 50))).astype(dtype)
    for layout in LAYOUTS.values():
        n = layout(others)
        for name, f in WITH_OTHERS.items():
            if dtype == "complex64" and name.startswith("stored"):
                continue
            jitted = mt.jit(lambda n, f=f: f(x @ y, n))
            jitted(n)
            got, want = jitted(n), f(x @ y, n)
            assert got.dtype == want.dtype and bits(got) == bits(want)
    if dtype != "complex64":
        n = layout(others[:, :1, None])
        for f in WITH_OTHERS.values():
            joined(lambda n, f=f: f(mt.ops.conv2d(image, weight)[0], n), n)
            joined(lambda n, f=f: f(mt.ops.conv2d(image, weight), n), n)


def test_a_product_that_has_other_uses_stays():
    x, y, several = array(20, 30), array(30, 20), array(3, 20, 20)

    def returned(x, y):
        z = x @ y
        return z, mt.ops.relu(z)

    def read(x, y):
        z = x @ y
        return mt.ops.relu(z), z.sum()

    def broadcast(x, y):
        return (x @ y) + several

    for f in (returned, read, broadcast):
        assert PRODUCT in joined(f, x, y)


def test_the_last_of_several_products_is_joined():
    w = [array(20, 20, seed=k) for k in range(3)]
    ops = joined(lambda x: mt.ops.relu(x @ w[0]) @ w[1] + x @ w[2], array(20, 20))
    assert ops == [f"fused({PRODUCT}, relu)", PRODUCT, f"fused({PRODUCT}, add)"]


def test_a_change_between_a_product_and_its_reader_comes_after_the_product():
    y, r = array(30, 20), array(20, 20)

    @mt.jit
    def f(x):
        state = x * 1
        product = state @ y
        state.__imul__(0)
        return mt.ops.relu(product + r), state

    for seed in range(2):
        x = array(20, 30, seed=seed)
        result, state = f(x)
        assert bits(result) == bits(mt.ops.relu(x @ y + r)) and not state.any()
    assert PRODUCT in f.graphs[0].ops


def test_a_change_of_the_product_comes_before_its_reader():
    def f(x, y):
        z = x @ y
        z[0] = 5.0
        return mt.ops.relu(z)

    joined(f, array(20, 30), array(30, 20))


@pytest.mark.parametrize("shape", [(20, 30), (2, 20, 30)], ids=str)
def test_gradients_are_those_of_eager_mode(shape):
    x, w, b = array(*shape).requires_grad_(), array(30, 40).requires_grad_(), array(40).requires_grad_()

    def f(x, w, b):
        return mt.ops.gelu(x @ w + b)

    def gradients(f, create_graph=False):
        c = array(*shape[:-1], 40, seed=1)
        first = mt.grad(f(x, w, b), [x, w, b], c, create_graph=create_graph)
        return mt.grad(sum((g * g).sum() for g in first), [x, w, b]) if create_graph else first

    jitted = mt.jit(f)
    for create_graph in (False, True):
        for got, want in zip(gradients(jitted, create_graph), gradients(f, create_graph), strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)
    assert any(f"fused({PRODUCT}, add, gelu" in op for op in jitted.graphs[0].ops)


def test_a_gradient_inside_of_the_function_is_joined_too():
    x, w = array(64, 32).requires_grad_(), array(32, 48)

    def f(x, c):
        return mt.grad(mt.ops.tanh(x) @ w, [x], c)[0]

    assert f"fused({PRODUCT}, tanh.vjp)" in joined(f, x, array(64, 48))


def test_the_text_of_a_graph_has_the_program():
    f = mt.jit(lambda x, y, b: mt.ops.relu(x @ y + b))
    f(array(8, 8), array(8, 8), array(8))
    lines = str(f.graphs[0]).splitlines()
    assert lines[3:6] == [
        f"%3: float32 (8, 8) = fused({PRODUCT}, add, relu)(%0, %1, %2)",
        f"    r = {PRODUCT}(x0, x1)",
        "    %0 = r + x2",
    ]


@pytest.mark.parametrize("seed", range(12))
def test_random_networks_give_the_bits_of_eager_mode(seed):
    chance = random.Random(seed)
    sizes = [chance.choice((1, 2, 3, 17, 32, 65, 128)) for _ in range(6)]
    w = [array(a, b, seed=seed) * 0.3 for a, b in zip(sizes, sizes[1:], strict=False)]
    v = [array(b, seed=seed + 1) for b in sizes[1:]]
    names = [chance.choice(sorted(EPILOGUES)) for _ in w]

    def f(x):
        for weight, bias, name in zip(w, v, names, strict=True):
            y = x @ weight
            x = EPILOGUES[name](y, bias, y * 0 + 1, y > 0)
            x = x[0] if isinstance(x, tuple) else x.astype("float32")
        return x

    rows = chance.choice((1, 2, 33, 200))
    joined(f, array(rows, sizes[0], seed=seed))
    joined(f, array(2, rows, sizes[0], seed=seed))
