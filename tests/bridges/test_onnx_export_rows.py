"""Row ops exported to ONNX: functions of whole rows, masks, positions, and numbers that are stored as integers."""

import itertools
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx_runs import expect_same

import minitensor as mt

sys.path.append(str(Path(__file__).parents[1] / "python"))
from c_plugin import library, loaded  # noqa: E402
from test_plugin_library_programs import ALONE, MAGNITUDE, writing  # noqa: E402

pytestmark = pytest.mark.usefixtures("exports_quickly", "no_plugins_stay", "registered")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


def row_op(function, name="of_rows", **options):
    return mt.row_op(name=f"onnx::{name}", **options)(function)


#: Functions of the rows `x` and `y`. Those of one row also take `y`, so that all take the same arguments.
FUNCTIONS = {
    "shift": lambda x, y: (x.shift(0), x.shift(1), x.shift(2), x.shift(9), x.shift(2**63 - 1)),
    "shift back": lambda x, y: (x.shift(-1), x.shift(-2), x.shift(-9), x.shift(-(2**63))),
    "reverse": lambda x, y: (x.reverse(), y.reverse()),
    "cumprod": lambda x, y: (x.cumprod(), y.cumprod()),
    "cummax": lambda x, y: (x.cummax(), y.cummax()),
    "cummin": lambda x, y: (x.cummin(), y.cummin()),
    "recurrence": lambda x, y: (x.recurrence(y), y.recurrence(x)),
    "reverse_recurrence": lambda x, y: (x.reverse_recurrence(y), y.reverse_recurrence(x)),
    "scan": lambda x, y: (
        x.scan(lambda h, x: mt.where(y > 1, h, 1.0) + x * x.position()),
        *y.scan(lambda h, x: (h[0] + h[1] / 2, mt.where(h[0] > x[0], x[1], -h[1])), x),
    ),
    "sort": lambda x, y: (x.sort(), y.sort()),
    "argsort": lambda x, y: (x.argsort(), y.argsort()),
    "take": lambda x, y: (x.take(y), y.take(x)),
    "put": lambda x, y: (x.put(y), y.put(x)),
}
SHAPES = [((5,), 0), ((2, 5), 1), ((2, 5), 0), ((3, 4, 2), 1), ((2, 1), 1), ((2, 0), 1), ((0, 3), 1), ((3, 0), 0)]


def small_integers(shape, dtype):
    """Numbers that are positions, and others, with ties."""
    return mt.Tensor(np.random.default_rng(len(shape)).integers(-1, 4, shape).astype(dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_whole_rows_along_any_axis(name, dtype, path):
    op = row_op(lambda x, y: (*FUNCTIONS[name](x, y), x + y), axis=-1)
    for shape, axis in SHAPES:
        x, y = small_integers(shape, dtype), small_integers(shape[::-1], dtype).reshape(shape)
        expect_same(path, lambda x, y, axis=axis: op(x, y, axis=axis), [x, y], rtol=0, atol=0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_of_several_axes(name, path):
    op = row_op(lambda x, y: (*FUNCTIONS[name](x, y), x + y), axis=None)
    x, y = (small_integers((2, 3, 4), "float32") for _ in range(2))
    for axis in (None, [0, 2], [1], [-1, -2], []):
        expect_same(path, lambda x, y, axis=axis: op(x, y, axis=axis), [x, y], rtol=0, atol=0)


SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 2.0, 1.5, -1.0, 1e30]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_with_special_values_and_ties(name, dtype, path):
    """NaN, infinities, equal elements, and positions that do not exist."""
    op = row_op(lambda x, y: (*FUNCTIONS[name](x, y), x + y))
    x, y = (mt.Tensor([list(p) for p in part], dtype=dtype) for part in zip(*_pairs(), strict=True))
    with np.errstate(all="ignore"):
        expect_same(path, lambda x, y: op(x, y), [x, y], rtol=1e-6)


def _pairs():
    """Pairs of rows of four elements."""
    rows = list(itertools.product(SPECIAL, repeat=2))
    return [((*a, *b), (*b[::-1], *a)) for a, b in zip(rows, rows[::-1], strict=True)]


def test_rows_are_sorted_in_a_stable_way(path):
    op = row_op(lambda x: x.argsort())
    x = mt.Tensor(np.random.default_rng(0).integers(0, 5, (3, 1000)).astype("float32"))
    expect_same(path, lambda x: op(x), [x])
    expected = np.argsort(x.numpy(), axis=-1, kind="stable")
    np.testing.assert_array_equal(op(x).numpy(), expected)


def test_inputs_of_rows_broadcast(path):
    op = row_op(lambda x, i: (x.take(i), x.put(i), i.recurrence(x), i.cummax() + x.sum() * 0))
    pair = small_integers((2, 1, 3), "float32"), small_integers((4, 3), "float32")
    expect_same(path, lambda x, i: op(x, i), pair)
    expect_same(path, lambda x, i: op(x, i), [small_integers((3,), "float32"), pair[0]])
    row = row_op(
        name="of_weights",
        function=lambda x, w: (w.sort().take(x), w.recurrence(x), x.recurrence(w)),
        shape="(x: [.., n], w: [n]) -> (a: [.., n], b: [.., n], c: [.., n])",
        outputs=["a", "b", "c"],
    )
    expect_same(path, lambda x, w: row(x, w), [pair[1], small_integers((3,), "float32")])


def test_numbers_of_rows_become_rows(path):
    op = row_op(lambda x: (x.take(x.argmax()), x.recurrence(x.mean()), x.max().cummax() + x, x.max().sort()))
    expect_same(path, lambda x: op(x), [mt.randn(3, 5)], [mt.randn(3, 5)])


def test_sizes_that_the_file_does_not_fix(path):
    op = row_op(lambda x, y: tuple(f(x, y)[0] for f in FUNCTIONS.values()), axis=-1)
    examples = [[small_integers((n, m), "float32") for _ in range(2)] for n, m in ((3, 4), (1, 7), (5, 2))]
    dynamic = {"dynamic": {0: "n", 1: "m"}}
    expect_same(path, lambda x, y: op(x, y, axis=0), *examples, export=dynamic)


def test_an_attribute_is_one_of_the_function(path):
    smooth = row_op(lambda x, decay=0.9: x.recurrence(decay), "smooth", axis=-1)
    exported = expect_same(path, lambda x: (smooth(x, decay=0.5), smooth(x, decay=0.25)), [mt.randn(2, 6)])
    [function] = exported.functions
    assert list(function.attribute) == ["decay"]


def test_truth_values_of_elements_and_of_rows(path):
    op = row_op(lambda x, m: (x > x.mean(), (x > 1.0).any(), mt.ops.where(m != 0, x, 0.0).cummax()), axis=-1)
    x = mt.randn(3, 4)
    for axis in (0, 1):
        expect_same(path, lambda x, m, axis=axis: op(x, m.astype("float32"), axis=axis), [x, x > 0])


# Ops of a plugin whose program has integers beside its numbers. The kernels are what the program is compared with.

KERNELS = r"""
#define CONVERTED(v) (v != v ? 0 : v > 127 ? 127 : v < -128 ? -128 : (int8_t)v)
#define STEPS(name, T) \
  static int32_t name(const void *context, const MtValue *attrs, int64_t n, const void *const *in, void *const *out, \
                      MtError *error) { \
    (void)context, (void)attrs, (void)error; \
    for (int64_t i = 0; i < n; i++) { \
      T v = ((const T *)in[0])[i] * (T)((const int8_t *)in[1])[i]; \
      ((int8_t *)out[0])[i] = CONVERTED(v); \
    } \
    return MT_OK; \
  }
STEPS(steps_f32, float)
STEPS(steps_f64, double)
static const MtKernel steps[] = {{.dtypes = {MT_FLOAT32}, .run.elements = steps_f32},
                                 {.dtypes = {MT_FLOAT64}, .run.elements = steps_f64}};
static const MtInput steps_in[] = {{N("x")}, {N("s"), .dtype_rule = MT_FIXED, .dtype = MT_INT8}};
static const MtOutput steps_out[] = {{N("out"), .dtype_rule = MT_FIXED, .dtype = MT_INT8}};
__attribute__((unused)) static const void *used[] = {mask, scale};
"""
STEPS = json.dumps(
    {
        "inputs": ["x", "s"],
        "uniforms": [],
        "nodes": [["input", 0], ["input", 1], ["multiply", 0, 1]],
        "outputs": [["out", 2]],
    }
)
STEPS_OP = (
    ".inputs = steps_in, .n_inputs = 2, .outputs = steps_out, .kernels = steps, .program = program, "
    ".backward_kind = MT_NOT_NEEDED, .backward = {0},"
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_that_are_stored_as_integers(dtype, path):
    """The fraction is dropped, and numbers outside of the range are the nearest integer."""
    numbers = [1.7, -1.7, 127.9, 128.0, -128.9, -129.0, 6e4, -6e4, math.inf, -math.inf, math.nan]
    with loaded(library(code=writing(STEPS) + KERNELS, op=STEPS_OP)):
        x, s = mt.Tensor(numbers, dtype=dtype), mt.ones(len(numbers)).astype("int8")
        assert mt.ops.probe(x, s).tolist() == [1, -1, 127, 127, -128, -128, 127, -128, 127, -128, 0]
        expect_same(path, lambda x, s: mt.ops.probe(x, s), [x, s], [x, s * 3])


CELLS = r"""
#define AT(k, i, T) ((T *)((char *)args[k].data + i * args[k].step))
#define TOP(name, T) \
  static int32_t name(const void *context, const MtValue *attrs, const MtCell *args, int64_t n, MtError *error) { \
    (void)context, (void)attrs, (void)error; \
    for (int64_t i = 0; i < n; i++) { \
      const T *x = AT(0, i, const T); \
      const uint8_t *kept = AT(1, i, const uint8_t); \
      int64_t at = 0, after = *AT(2, i, const int64_t), count = (int64_t)args[0].shape[0]; \
      for (int64_t j = count - 1; j >= 0; j--) if (kept[j] && j > after && (x[j] >= x[at] || at <= after)) at = j; \
      *AT(3, i, int64_t) = at; \
      for (int64_t j = 0; j < count; j++) AT(4, i, uint8_t)[j] = kept[j] && j > after; \
    } \
    return MT_OK; \
  }
TOP(top_f32, float)
TOP(top_f64, double)
static const MtKernel tops[] = {{.dtypes = {MT_FLOAT32}, .run.cells = top_f32},
                                {.dtypes = {MT_FLOAT64}, .run.cells = top_f64}};
static const MtInput tops_in[] = {{N("x"), .core = MT_SLICE},
                                  {N("kept"), .core = MT_SLICE, .dtype_rule = MT_FIXED, .dtype = MT_BOOL},
                                  {N("after"), .dtype_rule = MT_FIXED, .dtype = MT_INT64}};
static const MtOutput tops_out[] = {{N("at"), .dtype_rule = MT_FIXED, .dtype = MT_INT64},
                                    {N("open"), .core = MT_SLICE, .dtype_rule = MT_FIXED, .dtype = MT_BOOL}};
__attribute__((unused)) static const void *used[] = {mask, scale};
"""
# The position of the largest element that a mask keeps and that is after a position, and which elements these are.
TOP = json.dumps(
    {
        "inputs": ["x", "kept"],
        "uniforms": ["after"],
        "nodes": [
            *(["input", 0], ["input", 1], ["truthy", 1], ["uniform", 0], ["position"], ["less", 3, 4], ["and", 2, 5]),
            *(["constant", "-inf"], ["select", 6, 0, 7], ["max", 8], ["equal", 8, 9], ["and", 10, 6]),
            *(["constant", "inf"], ["select", 11, 4, 12], ["min", 13], ["count"], ["less", 14, 15]),
            *(["constant", 0], ["select", 16, 14, 17]),
        ],
        "outputs": [["at", 18], ["open", 6]],
    }
)
TOP_OP = (
    ".body = MT_CELLS, .inputs = tops_in, .n_inputs = 3, .outputs = tops_out, .n_outputs = 2, .kernels = tops, "
    '.shape = MT_STR("(x: [.., n], kept: [.., n], after: [..]) -> (at: [..], open: [.., n])"), '
    ".program = program, .backward_kind = MT_NOT_NEEDED, .backward = {0},"
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_masks_and_positions_of_rows(dtype, path):
    rng = np.random.default_rng(0)
    with loaded(library(code=writing(TOP) + CELLS, op=TOP_OP)):
        x = mt.Tensor(rng.integers(-3, 3, (20, 6)).astype(dtype))
        kept, after = mt.Tensor(rng.integers(0, 2, (20, 6)) == 1), mt.Tensor(rng.integers(-1, 6, 20))
        expect_same(path, lambda x, kept, after: mt.ops.probe(x, kept, after), [x, kept, after])
        expect_same(path, lambda x, kept: mt.ops.probe(x, kept, 2), [x, kept])


@pytest.mark.parametrize("opset", [20, 23, 26])
def test_functions_of_whole_rows_in_other_opsets_and_in_a_file_that_is_loaded(opset, path):
    op = row_op(lambda x, y: tuple(f(x, y)[0] for f in FUNCTIONS.values()))
    x, y = small_integers((3, 5), "float32"), small_integers((5, 3), "float32").T
    expect_same(path, lambda x, y: op(x, y), [x, y], export={"opset": opset})
    loaded = mt.onnx.load(path)
    for found, expected in zip(loaded(x, y), op(x, y), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_rows_of_integers_are_computed_in_64_bits(dtype, path):
    op = row_op(lambda x: ((x ^ x.shift(1)).sum(), (x & 3).cumsum(), (x | 1).argmax()), axis=-1)
    x = mt.Tensor(np.random.default_rng(3).integers(0, 100, (3, 200)).astype(dtype))
    for axis in (-1, 0):
        expect_same(path, lambda x, axis=axis: op(x, axis=axis), [x], rtol=0, atol=0)


def test_bits_of_floats_have_no_function_in_onnx(path):
    with loaded(library(code=writing(MAGNITUDE), op=ALONE)):
        x = mt.Tensor([-1.5, 2.0], dtype="float64")
        assert mt.ops.probe(x).tolist() == [1.5, 2.0]
        with pytest.raises(ValueError, match=r"'probe'.*ONNX has no functions of the bits of floats; avoid the op"):
            mt.onnx.export(mt.jit(lambda x: mt.ops.probe(x)), path, x)
