"""Results whose size depends on elements, `nonzero` and the functions `unique_*`, and `size`, which bounds it."""

import math

import numpy as np
import pytest
from numpy_functions import nonzero_rows

import minitensor as mt

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
DTYPES = ["bool", *INTEGERS, *FLOATS, "complex64", "complex128"]
SHAPES = [(), (0,), (1,), (3, 0, 2), (7,), (4, 5), (2, 3, 70), (100_001,)]
NAMES = ["unique_values", "unique_counts", "unique_inverse", "unique_all"]
FIELDS = ("values", "indices", "inverse_indices", "counts")


def numbers(dtype, shape, seed=0):
    """Numbers with many ties. Floats include NaN, infinities and both zeros."""
    rng = np.random.default_rng(seed)
    a = np.asarray(rng.integers(0, 30, shape)).astype(dtype)
    if dtype in FLOATS:
        for value in (np.nan, -0.0, np.inf, -np.inf):
            a[rng.random(shape) < 0.03] = value
    if dtype.startswith("complex"):
        a = (a - 1j * np.asarray(rng.integers(0, 3, shape))).astype(dtype)
    return a


def unique(a, size=None, fill_value=None):
    """The results of `unique_all`, by a loop over the elements in ascending order."""
    flat = a.reshape(-1)
    values, indices, counts = [], [], []
    inverse = np.zeros(flat.size, "int64")
    for i in np.argsort(flat, kind="stable"):
        if not values or flat[i] != values[-1]:
            values.append(flat[i])
            indices.append(i)
            counts.append(0)
        counts[-1] += 1
        inverse[i] = len(values) - 1
    if size is not None:
        missing = max(0, size - len(values))
        first = values[0] if fill_value is None and missing else fill_value
        values = values[:size] + [first] * missing
        indices = indices[:size] + [indices[0] if indices else 0] * missing
        counts = counts[:size] + [0] * missing
    found = np.array(values, a.dtype), np.array(indices, "int64"), inverse.reshape(a.shape), np.array(counts, "int64")
    return dict(zip(FIELDS, found, strict=True))


def named(result):
    """The results of a function by name."""
    return {"values": result} if isinstance(result, mt.Tensor) else result._asdict()


def assert_equal(result, expected):
    for name, t in named(result).items():
        want = expected[name]
        assert (t.dtype, t.shape) == (str(want.dtype), want.shape), name
        np.testing.assert_array_equal(t.detach().numpy(), want, name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_distinct_elements_are_those_of_a_loop(name, dtype):
    for shape in SHAPES[:-1]:
        a = numbers(dtype, shape)
        for options in ({}, {"size": 0}, {"size": 5, "fill_value": 1}, {"size": 70, "fill_value": 1}):
            assert_equal(getattr(mt.ops, name)(mt.asarray(a), **options), unique(a, **options))
        if a.size:
            assert_equal(getattr(mt.ops, name)(mt.asarray(a), 40), unique(a, 40))


@pytest.mark.parametrize("dtype", DTYPES)
def test_distinct_elements_are_those_of_numpy(dtype):
    for shape in SHAPES[1:]:
        a = numbers(dtype, shape)
        flat = a.reshape(-1)
        # NumPy sorts float16 incorrectly on CPUs with AVX-512 FP16.
        wide = flat.astype("float32") if dtype == "float16" else flat
        options = {"return_index": True, "return_inverse": True, "return_counts": True, "equal_nan": False}
        values, indices, inverse, counts = np.unique(wide, **options)
        found = mt.ops.unique_all(mt.asarray(a))
        np.testing.assert_array_equal(found.values.numpy(), values.astype(dtype))
        np.testing.assert_array_equal(found.counts.numpy(), counts)
        # Each NaN is a value of its own, so the order of their indices is not that of NumPy.
        is_number = values == values
        np.testing.assert_array_equal(found.indices.numpy()[is_number], indices[is_number])
        is_number = wide == wide
        np.testing.assert_array_equal(found.inverse_indices.numpy().reshape(-1)[is_number], inverse[is_number])
        if flat.size:
            np.testing.assert_array_equal(found.values[found.inverse_indices].numpy(), a)
            np.testing.assert_array_equal(flat[found.indices.numpy()], found.values.numpy())


def test_zeros_are_equal_and_every_nan_is_distinct():
    values, indices, inverse, counts = mt.ops.unique_all(mt.Tensor([math.nan, 0.0, -0.0, math.nan, -1.0]))
    assert values.tolist()[:2] == [-1.0, 0.0] and np.isnan(values.numpy()[2:]).all()
    assert (indices.tolist(), inverse.tolist(), counts.tolist()) == ([4, 1, 0, 3], [2, 1, 1, 3, 0], [1, 2, 1, 1])
    assert len(mt.ops.unique_values(mt.Tensor([complex(math.nan, 0), complex(0, math.nan)] * 2))) == 4
    assert mt.ops.unique_values(mt.Tensor([complex(-0.0, 0.0), complex(0.0, -0.0)])).tolist() == [0]


def test_bfloat16_keeps_its_dtype():
    found = mt.ops.unique_all(mt.Tensor([2.0, 1.0, 2.0]).astype("bfloat16"), size=3, fill_value=0.5)
    assert found.values.dtype == mt.bfloat16
    assert [t.tolist() for t in found] == [[1.0, 2.0, 0.5], [1, 0, 1], [1, 0, 1], [1, 2, 0]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_nonzero_with_a_size_is_cut_or_filled(dtype):
    for shape in SHAPES:
        a = np.where(numbers("int8", shape) > 9, numbers(dtype, shape, 1), 0).astype(dtype)
        x = mt.asarray(a)
        if shape:
            np.testing.assert_array_equal(mt.ops.nonzero(x).numpy(), np.argwhere(a))
        for size in (0, 1, 9, 60_000, 120_000):
            for fill_value in (0, -1, 2**62):
                got = mt.ops.nonzero(x, size, fill_value).numpy()
                assert got.dtype == "int64" and got.shape == (size, len(shape))
                np.testing.assert_array_equal(got, nonzero_rows(a, size, fill_value) if shape else got)


def test_a_layout_does_not_change_the_result():
    a = numbers("float32", (30, 40))
    for view in (a.T, a[::2, 3:], a[::-1], a[:, :1], np.broadcast_to(a[0], (3, 40))):
        assert_equal(mt.ops.unique_all(mt.asarray(view), size=35), unique(view, 35))
        found = mt.ops.nonzero(mt.asarray(view), size=50, fill_value=7)
        np.testing.assert_array_equal(found.numpy(), nonzero_rows(view, 50, 7))


FUNCTIONS = {
    "nonzero": lambda x: mt.ops.nonzero(x, size=4, fill_value=-1),
    "nonzero of a mask": lambda x: mt.ops.nonzero(x > 1, size=9),
    "unique_values": lambda x: mt.ops.unique_values(x, size=4),
    "unique_counts": lambda x: mt.ops.unique_counts(x, size=5, fill_value=-1),
    "unique_inverse": lambda x: mt.ops.unique_inverse(x, size=2),
    "unique_all": lambda x: mt.ops.unique_all(x, size=7),
    "a histogram": lambda x: mt.ops.unique_counts(x, size=6).counts[mt.ops.unique_inverse(x, size=6).inverse_indices],
}
INPUTS = [
    [[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]],
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
    [[5.0, 4.0, 3.0], [2.0, 1.0, 7.0]],
    [[math.nan, -0.0, 0.0], [math.inf, math.nan, 1.0]],
]


def listed(result):
    """The elements of the results as text, in which NaN equals NaN."""
    return str([t.tolist() for t in (result if isinstance(result, tuple) else (result,))])


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int64", "bool"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_with_a_size_one_graph_is_for_all_elements(name, dtype):
    f = FUNCTIONS[name]
    jitted = mt.jit(f)
    for values in INPUTS:
        if dtype not in ("int64", "bool") or math.isfinite(sum(map(sum, values))):
            x = mt.Tensor(values).astype(dtype)
            assert listed(jitted(x)) == listed(f(x))
    assert len(jitted.graphs) == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_with_a_size_a_batch_is_a_loop_over_examples(name):
    f = FUNCTIONS[name]
    x = mt.Tensor(INPUTS)
    loop = [f(x[k]) for k in range(len(INPUTS))]
    loop = loop if isinstance(loop[0], tuple) else [(t,) for t in loop]
    expected = [mt.ops.stack(list(parts)) for parts in zip(*loop, strict=True)]
    for batched in (mt.vmap(f), mt.jit(mt.vmap(f))):
        assert listed(batched(x)) == listed(tuple(expected))
    grid = mt.vmap(mt.vmap(f))(x.unsqueeze(1))
    assert listed(grid) == listed(tuple(t.unsqueeze(1) for t in expected))


def test_the_number_of_calls_does_not_depend_on_the_batch():
    def calls(x):
        with mt.profiler.profile() as p:
            mt.vmap(lambda x: mt.ops.unique_all(x, size=7))(x)
        return [event.name for event in p.events()]

    x = mt.Tensor(INPUTS)
    assert calls(x) == calls(x[:2])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_shapes_are_known_on_meta(name):
    x = mt.Tensor(INPUTS[0])
    got, expected = FUNCTIONS[name](x.to("meta")), FUNCTIONS[name](x)
    pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
    for meta, t in pairs:
        assert (meta.device, meta.shape, meta.dtype) == ("meta", t.shape, t.dtype)


@pytest.mark.parametrize("options", [{}, {"size": 2}, {"size": 5}, {"size": 5, "fill_value": 3.0}], ids=str)
def test_values_have_the_gradient_of_the_elements_at_their_indices(options):
    a = np.array([[3.0, 1.0, 2.0], [1.0, 3.0, 1.0]])

    def of_values(x):
        values, counts = mt.ops.unique_counts(x, **options)
        return mt.grad((values * values * (counts + 1)).sum(), [x])[0]

    x = mt.asarray(a).requires_grad_()
    indices, counts = mt.ops.unique_all(x, **options)[1::2]
    flat = x.reshape(-1)
    is_filled = mt.where(counts > 0, 0.0, 1.0) if "fill_value" in options else 0
    picked = flat[indices] * (1 - is_filled)
    expected = mt.grad((picked * picked * (counts + 1)).sum(), [x])[0].tolist()
    assert of_values(x).tolist() == expected
    assert mt.jit(of_values)(x).tolist() == expected
    if options:
        y = mt.vmap(lambda x: mt.ops.unique_values(x, **options))(x)
        rows_of_x = [mt.ops.unique_values(x[k], **options) for k in range(2)]
        found = mt.grad((y * y).sum(), [x])[0].tolist()
        assert found == mt.grad(sum((t * t).sum() for t in rows_of_x), [x])[0].tolist()


UNBOUNDED = {
    "nonzero": mt.ops.nonzero,
    "mask": lambda x: x[x > 0] * 2,
    "unique_values": lambda x: mt.ops.unique_values(x) + 1,
    "unique_all": lambda x: mt.ops.unique_all(x)[0],
}


@pytest.mark.parametrize("name", UNBOUNDED)
def test_without_a_size_an_error_names_it(name):
    f = UNBOUNDED[name]
    x = mt.Tensor([[0.0, 1.0, 2.0], [0.0, 2.0, 1.0], [0.0, 0.0, 1.0]])
    jitted = mt.jit(f)
    for k in (0, 1):
        assert listed(jitted(x[k])) == listed(f(x[k]))
    message = r"op 'nonzero' returned shape .* pass size= to ops that take it, such as nonzero and unique_values"
    with pytest.raises(RuntimeError, match=message):
        jitted(x[2])
    assert listed(mt.vmap(f)(x[:2])) == listed(mt.ops.stack([f(x[0]), f(x[1])]))
    with pytest.raises(RuntimeError, match="sizes must not depend on elements; pass size= to ops that take it"):
        mt.vmap(f)(x)


BAD = [
    ("nonzero(x, size=-1)", ValueError, "op 'nonzero': attribute 'size' takes int of at least 0 or None, got -1"),
    ("nonzero(x, size=2**62)", MemoryError, "op 'nonzero': .*a tensor of shape (4611686018427387904, 1)"),
    ("nonzero(x, size=2**63 - 1)", MemoryError, "op 'nonzero': .*a tensor of shape (9223372036854775807, 1)"),
    ("nonzero(x, size=1.5)", TypeError, "op 'nonzero': attribute 'size' takes int of at least 0 or None, got 1.5"),
    ("nonzero(x, size=2, fill_value=0.5)", TypeError, "op 'nonzero': attribute 'fill_value' takes int, got 0.5"),
    ("nonzero(x, size=mt.Tensor([1, 2]))", TypeError, "op 'nonzero': attribute 'size' takes"),
    ("row.nonzero(x, [2, 2], 3, 2, 0)", ValueError, "op 'row::nonzero': 'shape' must have 2 sizes, and their product"),
    ("row.nonzero(x, [3], 3, 2, 0)", ValueError, "op 'row::nonzero': 'shape' must have 2 sizes, and their product"),
    (
        "unique_values(x, size=-1)",
        ValueError,
        "op 'unique_values': attribute 'size' takes int of at least 0 or None, got -1",
    ),
    ("unique_values(x, size=2**62)", MemoryError, "op 'unique_values': .*a tensor of shape (4611686018427387905, 1)"),
    ("unique_all(x, size=2**63 - 1)", MemoryError, "op 'unique_all': .*a tensor of shape (9223372036854775807, 1)"),
    ("unique_all(x, size=2**40)", MemoryError, "op 'unique_all': .*a tensor of shape (1099511627777, 1)"),
    ("unique_values(x[:0], size=3)", ValueError, "op 'unique_values': 'x' has no elements, so there is no smallest"),
    (
        "unique_counts(x.astype('int32'), 9, 0.5)",
        ValueError,
        "op 'unique_counts': 'fill_value' = 0.5 is not a number of dtype int32",
    ),
    ("unique_values(x.astype('uint8'), fill_value=-1)", ValueError, "'fill_value' = -1 is not a number of dtype uint8"),
    ("unique_values(x, 3, 'a')", TypeError, "op 'unique_values': attribute 'fill_value' takes float or None, got 'a'"),
    ("unique_values(x, 3, 2j)", TypeError, "op 'unique_values': attribute 'fill_value' takes float or None, got 2j"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[call for call, _, _ in BAD])
def test_bad_input_is_named(call, error, message):
    pattern = message.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(error, match=pattern):
        eval(f"mt.ops.{call}", {"mt": mt, "x": mt.Tensor([1.0, 0.0, 3.0])})
