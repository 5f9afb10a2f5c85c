"""Elementwise ops on all memory layouts, around the block sizes, and on large tensors."""

import math

import numpy as np
import pytest

import minitensor as mt

SHAPES = [
    (),
    (1,),
    (63,),
    (2048,),
    (4097,),
    (70, 70),
    (17, 130),
    (1000, 3),
    (5, 2049),
    (33, 64),
    (3, 100, 100),
    (2, 65, 64),
    (64, 33, 2),
    (2, 3, 5, 7),
    (4, 1, 300, 2),
    # Large enough for machine code that goes through many rows.
    (300, 257),
    (256, 192),
    (3, 90, 130),
]


def view(rng, shape, dtype):
    """Returns a view of this shape with random strides: permuted, negative, with steps, or broadcast."""
    order = rng.permutation(len(shape))
    steps = [int(rng.choice([1, 1, 1, 2, 3, -1, -2])) for _ in shape]
    broadcast = [rng.random() < 0.15 for _ in shape]
    sizes = [1 if b else n * abs(s) for n, s, b in zip(shape, steps, broadcast, strict=True)]
    base = rng.standard_normal([sizes[axis] for axis in order]).astype(dtype)
    tensor, array = mt.Tensor(base), base
    inverse = [int(axis) for axis in np.argsort(order)]
    if shape:
        tensor, array = mt.ops.permute(tensor, inverse), array.transpose(inverse)
    index = tuple(slice(None, None, 1 if b else s) for s, b in zip(steps, broadcast, strict=True))
    return mt.ops.broadcast_to(tensor[index], list(shape)), np.broadcast_to(array[index], shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_any_layout(shape, dtype):
    rng = np.random.default_rng(len(shape) + sum(shape))
    for _ in range(8):
        (x, a), (y, b) = view(rng, shape, dtype), view(rng, shape, dtype)
        np.testing.assert_array_equal(np.asarray(x + y), a + b)
        np.testing.assert_array_equal(np.asarray(mt.ops.where(x > y, x, y)), np.maximum(a, b))
        np.testing.assert_array_equal(np.asarray(x.astype(mt.float32)), a.astype(np.float32))
        np.testing.assert_array_equal(np.asarray(x * 2.5), a * dtype(2.5))


@pytest.mark.parametrize("shape", [s for s in SHAPES if math.prod(s) > 40_000], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_one_number_for_each_row_and_one_row_for_all(shape, dtype):
    rng = np.random.default_rng(sum(shape))
    table = rng.standard_normal(shape).astype(dtype)
    column = rng.standard_normal((*shape[:-1], 1)).astype(dtype)
    row = rng.standard_normal(shape[-1]).astype(dtype)
    wide = rng.standard_normal((*shape[:-1], shape[-1] + 5)).astype(dtype)
    t, c, r, w = map(mt.Tensor, (table, column, row, wide))
    np.testing.assert_array_equal(np.asarray(c * r), column * row)
    np.testing.assert_array_equal(np.asarray(t + r), table + row)
    np.testing.assert_array_equal(np.asarray(t - c), table - column)
    np.testing.assert_array_equal(np.asarray(w[..., 2:-3] * c), wide[..., 2:-3] * column)
    np.testing.assert_array_equal(np.asarray(mt.where(t > c, r, c)), np.where(table > column, row, column))
    w[..., 2:-3] += r
    wide[..., 2:-3] += row
    np.testing.assert_array_equal(np.asarray(w), wide)


@pytest.mark.parametrize("shape", [s for s in SHAPES if s], ids=str)
def test_any_layout_in_place(shape):
    rng = np.random.default_rng(sum(shape))
    for _ in range(8):
        base = rng.standard_normal([2 * n for n in reversed(shape)])
        x, a = mt.Tensor(base), base.copy()
        y, b = view(rng, shape, np.float64)
        axes, index = list(reversed(range(len(shape)))), tuple(slice(None, None, 2) for _ in shape)
        part = mt.ops.permute(x, axes)[index]
        part += y
        a.transpose(axes)[index] += b
        np.testing.assert_array_equal(np.asarray(x), a)


def test_more_than_the_cache_holds():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4100, 1031), np.float32)
    t = mt.Tensor(x)
    np.testing.assert_array_equal(np.asarray(t.copy()), x)
    np.testing.assert_array_equal(np.asarray(t.T.contiguous()), x.T)
    e = np.exp(x - x.max(1, keepdims=True).astype(np.float64))
    np.testing.assert_allclose(np.asarray(mt.ops.softmax(t)), e / e.sum(1, keepdims=True), rtol=1e-5)
    t.requires_grad_()
    weight = mt.Tensor(np.full(1031, 2, np.float32), requires_grad=True)
    mt.ops.rms_norm(t, weight).sum().backward()
    scale = 1 / np.sqrt((x.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(np.asarray(weight.grad), (x * scale).sum(0), rtol=1e-3, atol=1e-2)
    gradient = 2 * scale - x * scale**3 * 2 * x.sum(1, keepdims=True, dtype=np.float64) / 1031
    np.testing.assert_allclose(np.asarray(t.grad), gradient, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("width", [2048, 2050])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_results_that_bypass_the_cache(width, dtype):
    """Results of ops whose operands have 32 MiB and more, with rows that begin at whole cache lines or between them."""
    rng = np.random.default_rng(width)
    a, b = rng.standard_normal((2, 2100, width)).astype(dtype)
    x, y = mt.Tensor(a), mt.Tensor(b)
    n = min(a.shape)
    square, s = a[:n, :n], x[:n, :n]
    np.testing.assert_array_equal(np.asarray(x + y), a + b)
    np.testing.assert_array_equal(np.asarray(s + s.T), square + square.T)
    np.testing.assert_array_equal(np.asarray(x + x[0]), a + a[0])
    np.testing.assert_array_equal(np.asarray(x * x[:, :1]), a * a[:, :1])
    np.testing.assert_array_equal(np.asarray(mt.where(x > y, x, y)), np.maximum(a, b))
    np.testing.assert_array_equal(np.asarray(x.reshape(-1)[3:] - y.reshape(-1)[3:]), (a - b).reshape(-1)[3:])
    out, o = mt.Tensor(a), a.copy()
    out[:, 16:] += y[:, 16:]
    o[:, 16:] += b[:, 16:]
    np.testing.assert_array_equal(np.asarray(out), o)


def test_the_ops_that_a_product_calls_do_not_depend_on_the_layout():
    weight, rows = mt.ones((4, 5)), mt.ones((3, 2, 4))
    columns = mt.ones((3, 4, 2)).matrix_transpose()
    called = []
    for x in (rows, columns):
        with mt.profiler.profile() as p:
            result = x @ weight
        called.append([event.name for event in p.events()])
        assert result.tolist() == [[[4.0] * 5] * 2] * 3
    assert called[0] == called[1]
    assert called[0].count("linalg::matrix_product") == 1


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64, mt.float16], ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 128])
@pytest.mark.usefixtures("registered")
def test_rows_have_the_same_bits_in_any_company(n, dtype):
    """The number of rows decides how they are computed: alone, several by one call, or side by side."""

    @mt.row_op(shape="(x: [.., n], y: [.., n]) -> (out0: [.., n], out1: [..])")
    def mixed(x, y):
        """All reductions, positions, and a function of whole rows."""
        z = (x - x.max()) * y + x.position()
        return z.exp() / (1 + z.prod().abs()) + (x * y).cumsum(), (x * y).sum() - z.min() + y.mean()

    rng = np.random.default_rng(n)
    array, other = (mt.Tensor(rng.standard_normal((300, n))).astype(dtype) for _ in range(2))
    for op in (mt.softmax, mt.ops.layer_norm, mt.ops.log_softmax, mt.logsumexp, mt.ops.var, mt.sum, mt.max, mixed):
        arguments = (array, other) if op is mixed else (array, -1) if op is not mt.ops.layer_norm else (array,)
        many = op(*arguments)
        for row in (0, 1, 150, 299):
            one = op(arguments[0][row], *(a[row] if isinstance(a, mt.Tensor) else a for a in arguments[1:]))
            for all_rows, alone in zip(*(r if isinstance(r, tuple) else (r,) for r in (many, one)), strict=True):
                bits = [np.asarray(r.astype(mt.float64)) for r in (all_rows[row], alone)]
                np.testing.assert_array_equal(*bits, err_msg=f"row {row}")


@pytest.mark.parametrize("n", [1024, 1040, 1031, 128])
@pytest.mark.usefixtures("registered")
def test_rows_of_large_results(n):
    """Large results bypass the cache if their rows begin at whole cache lines. They have the bits of small results."""

    @mt.row_op(shape="(x: [.., n], weight: [n]) -> (out0: [.., n], out1: [.., n], out2: [.., n])")
    def spread(x, weight):
        """Three results of one pass."""
        y = (x - x.mean()) * weight
        return y, y > 0, y * y

    x = mt.Tensor(np.random.default_rng(n).standard_normal(((17 << 18) // n, n), np.float32))
    weight = x[7]
    for op in (mt.softmax, lambda x: mt.ops.rms_norm(x, weight), lambda x: spread(x, weight)):
        large, small = op(x), op(x[1000:1100])
        for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (large, small)), strict=True):
            np.testing.assert_array_equal(np.asarray(a)[1000:1100], np.asarray(b))


ROW_OPS = {
    "softmax": lambda x, axis: mt.ops.softmax(x, axis),
    "logsumexp": lambda x, axis: mt.ops.logsumexp(x, axis),
    "entropy": lambda x, axis: mt.ops.example.entropy(x, axis),
}


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64, mt.float16, mt.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(1, 16), (7, 40), (130, 65), (3, 700, 33), (20_000, 17), (2, 3, 5, 64)], ids=str)
@pytest.mark.usefixtures("registered")
def test_rows_along_any_axis(shape, dtype):
    """Rows along another axis than the last are computed side by side, with the bits of contiguous rows."""

    @mt.row_op(shape="(x: [.., n]) -> [.., n]", axis=-1)
    def ranks(x):
        """Ranks, running sums and neighbours: functions of whole rows."""
        return x.argsort() + x.cumsum() + x.shift(2) + x.reverse().cummax()

    array = np.random.default_rng(sum(shape)).standard_normal(shape)
    x = mt.Tensor(array).astype(dtype)
    for name, op in {**ROW_OPS, "ranks": ranks}.items():
        for axis in range(len(shape) - 1):
            contiguous = mt.ops.moveaxis(x, axis, -1).contiguous()
            expected = op(contiguous, -1)
            if expected.ndim == x.ndim:
                expected = mt.ops.moveaxis(expected, -1, axis)
            result = np.asarray(op(x, axis).astype(mt.float64))
            np.testing.assert_array_equal(
                result, np.asarray(expected.astype(mt.float64)), err_msg=f"{name}, axis {axis}"
            )


ROWS_WITH_GAPS = {
    "columns": lambda x: x[:, 3:130],
    "every other position": lambda x: x[::2],
    "every other row": lambda x: x[:, ::2],
    "from the end": lambda x: x[::-1],
    "transposed": lambda x: x.T,
    "one for all rows": lambda x: x[:, :1].expand(600, 150),
    "several batches": lambda x: x.reshape(2, 300, 150)[:, 10:290, 20:80].permute(1, 0, 2),
}


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64, mt.bfloat16], ids=str)
@pytest.mark.parametrize("name", ROWS_WITH_GAPS)
@pytest.mark.usefixtures("registered")
def test_numbers_of_rows_with_gaps(name, dtype):
    """Rows that are side by side are read where they are, with the bits of contiguous rows."""

    @mt.row_op(shape="(x: [.., n], y: [.., n], w: [n]) -> (out0: [..], out1: [..])")
    def distances(x, y, w):
        """Two numbers for each row."""
        return (w * (x - y).abs()).sum(), (x * y).exp().max()

    random = np.random.default_rng(7)
    x, y = (ROWS_WITH_GAPS[name](mt.Tensor(random.standard_normal((600, 150))).astype(dtype)) for _ in range(2))
    w = mt.Tensor(random.standard_normal(x.shape[0])).astype(dtype)
    x, y = mt.ops.moveaxis(x, 0, -1), mt.ops.moveaxis(y, 0, -1)
    for other in [y, y.contiguous()]:
        results = [mt.ops.logsumexp(x, -1), mt.var(x, axis=-1), *mt.ops.distances(x, other, w)]
        straight = x.contiguous()
        expected = [
            mt.ops.logsumexp(straight, -1),
            mt.var(straight, axis=-1),
            *mt.ops.distances(straight, y.contiguous(), w),
        ]
        for result, one in zip(results, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(result.astype(mt.float64)), np.asarray(one.astype(mt.float64)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min"])
@pytest.mark.parametrize("length", [256, 257, 320, 704, 717, 999])
def test_many_rows_are_reduced_like_each_alone(name, length, dtype):
    rng = np.random.default_rng(length)
    rows = rng.standard_normal((600, length)).astype(dtype)
    rows[3, 5], rows[4, 7], rows[5, :] = np.nan, np.inf, -0.0
    x, reduce = mt.Tensor(rows), getattr(mt.ops, name)
    each = np.array([np.asarray(reduce(x[k])) for k in range(len(rows))])
    bits = f"u{rows.itemsize}"

    def same(got):
        got = np.asarray(got)
        return (got.view(bits) == each.view(bits)) | (np.isnan(got) & np.isnan(each))

    assert same(reduce(x, axis=-1)).all()
    # Every other row.
    twice = mt.Tensor(np.repeat(rows, 2, axis=0))[::2]
    assert same(reduce(twice, axis=-1)).all()


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "every second row": lambda x: x[::2],
    "some columns": lambda x: x[..., 1:-1],
    "backwards": lambda x: x[::-1],
}


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(7,), (9, 1), (1, 20), (40, 30), (3, 70, 12), (2, 3, 4, 5, 16), (0, 4), (300, 40)])
def test_reductions_along_any_axes_of_any_layout(shape, dtype):
    rng = np.random.default_rng(len(shape))
    a = (rng.standard_normal(shape) * 3).astype(dtype)
    rank = len(shape)
    for layout, view in LAYOUTS.items():
        x, y = view(mt.Tensor(a)), view(a)
        wide = y.astype("float64") if y.dtype.kind == "f" else y
        for axis in [None, *range(rank), (0, rank - 1), *([(0, 1)] if rank > 2 else [])]:
            if isinstance(axis, tuple) and len(set(axis)) < len(axis):
                continue
            for name in ["sum", "mean", "max", "min", "any", "all", "count_nonzero", "argmax"]:
                extreme = name in ("max", "min", "argmax")
                if dtype == "bool" and extreme or (y.size == 0 and (extreme or name == "mean")):
                    continue
                if name == "argmax" and isinstance(axis, tuple):
                    continue
                expected = getattr(np, name)(wide, axis=axis, keepdims=True)
                got = np.asarray(getattr(mt.ops, name)(x, axis=axis, keepdims=True))
                where = f"{name}, axis {axis}, {layout}"
                assert got.shape == expected.shape, where
                if y.dtype.kind != "f" and name != "mean":
                    np.testing.assert_array_equal(got, expected, where)
                    continue
                # The terms of a sum may cancel each other.
                scale = np.abs(wide).sum() if name == "sum" else np.abs(wide).max(initial=1)
                digits = np.finfo(got.dtype).eps if got.dtype.kind == "f" else 0
                np.testing.assert_allclose(got, expected, rtol=4 * digits, atol=4 * digits * scale, err_msg=where)


def test_a_sum_computes_in_the_dtype_that_is_asked_for():
    x = mt.Tensor([100, 100], dtype=mt.uint8)
    assert (mt.ops.sum(x).dtype, mt.ops.sum(x).item()) == (mt.uint64, 200)
    assert (mt.ops.sum(x, dtype=mt.uint8).dtype, mt.ops.prod(x, dtype=mt.uint8).item()) == (mt.uint8, 10000 % 256)
    assert mt.ops.cumsum(x, dtype=mt.float64).tolist() == [100.0, 200.0]
    ones = mt.ones(3, requires_grad=True)
    mt.ops.sum(ones, dtype=mt.float64).backward()
    assert ones.grad.dtype == mt.float32 and ones.grad.tolist() == [1, 1, 1]
    assert (mt.ops.sum(True).dtype, mt.ops.prod(True).item()) == (mt.int64, 1)
    tiny = mt.Tensor([1e-30, 1e-30, 1e30, 1e30], requires_grad=True)
    mt.ops.prod(tiny, dtype=mt.float64).backward()
    np.testing.assert_allclose(tiny.grad.numpy(), [1e30, 1e30, 1e-30, 1e-30], rtol=1e-6)
    with pytest.raises(TypeError, match="op 'sum': a complex64 tensor as float32 would lose the imaginary parts"):
        mt.ops.sum(mt.Tensor([3 + 1j]), dtype=mt.float32)
    with pytest.raises(TypeError, match="op 'sum' computes in integer, floating or complex dtypes, got dtype bool"):
        mt.ops.sum(x, dtype=mt.bool)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_a_sum_in_half_precision_is_rounded_once(half, dtype):
    a = np.random.default_rng(2).integers(-3000, 3000, (8, 6, 4)).astype(dtype)
    spread = np.broadcast_to(a[:, :1], a.shape)
    for x, y in [
        (mt.Tensor(a), a),
        (mt.Tensor(a).T, a.T),
        (mt.Tensor(a)[::2], a[::2]),
        (mt.Tensor(a[:, :1]).expand(8, 6, 4), spread),
    ]:
        for axis in [None, 0, 1, 2, (0, 2)]:
            exact = mt.Tensor(y.astype(np.float64).sum(axis=axis))
            got = x.sum(axis=axis, dtype=half)
            assert got.dtype == half, (y.strides, axis)
            # NumPy may lack bfloat16. The conversion to float64 is exact.
            np.testing.assert_array_equal(
                got.astype("float64").numpy(),
                exact.astype(half).astype("float64").numpy(),
                err_msg=f"{y.strides} {axis}",
            )


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float32"])
@pytest.mark.parametrize("shape", [(1_300_007,), (3, 400_001), (200_003, 7), (3,) * 12], ids=str)
def test_long_rows_of_another_dtype_are_reduced_in_parts(shape, dtype):
    a = (np.random.default_rng(1).standard_normal(shape) * 9).astype(dtype)
    for x, y in [(mt.Tensor(a), a), (mt.Tensor(a).T, a.T), (mt.Tensor(a)[1::3], a[1::3])]:
        for axis in [None, *range(a.ndim)]:
            whole = y.astype(np.int64)
            for name in ["sum", "prod"]:
                got = getattr(mt.ops, name)(x, axis=axis, keepdims=True, dtype=mt.int64)
                np.testing.assert_array_equal(got.numpy(), getattr(np, name)(whole, axis=axis, keepdims=True))
            mean = y.astype(np.float64).mean(axis=axis)
            np.testing.assert_allclose(x.mean(axis=axis).numpy(), mean, rtol=1e-5, atol=1e-5)


def test_a_repeated_element_is_read_once():
    x = mt.ones(1).expand(2**34)
    few = mt.arange(1000, dtype=mt.int32).expand(10**9, 1000)
    assert (few.sum().item(), few.mean().item()) == (499_500 * 10**9, 499.5)
    assert (x.sum().item(), x.mean().item(), x.max().item(), x.count_nonzero().item()) == (2**34, 1, 1, 2**34)
    infinity = mt.Tensor(complex(np.inf, 0), dtype=mt.complex64)
    assert infinity.expand(3).sum().item() == complex(np.inf, 0)
    assert mt.Tensor(np.inf).expand(3).sum(dtype=mt.complex64).item() == complex(np.inf, 0)
