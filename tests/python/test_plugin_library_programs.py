"""Tests of the programs of a library's ops, alone and next to kernels."""

import math

import numpy as np
import pytest
from c_plugin import alone, library, loaded, refuses

import minitensor as mt

pytestmark = pytest.mark.usefixtures("no_plugins_stay")

X = [1.0, 2.0]


PROGRAM = """
__attribute__((unused)) static int32_t program(const void *context, const MtValue *attrs, int32_t n_attrs, void *sink,
                                               void (*give)(void *, MtStr), MtError *error) {
  (void)context, (void)attrs, (void)n_attrs, (void)error;
  give(sink, mt_str(JSON));
  return MT_OK;
}
#define N(text) .name = MT_STR(text)
static const MtAttr scale[] = {{N("scale"), .kind = KIND, .has_default = 1, .value = {.kind = KIND, .as.f = 1.5}}};
static const MtInput mask[] = {{N("x")}, {N("m"), .dtype_rule = MT_FIXED, .dtype = MT_BOOL}};
__attribute__((unused)) static const MtInput optional[] = {{N("x")}, {N("m"), .arity = MT_OPTIONAL}};
__attribute__((unused)) static const MtGeneric more[] = {{MT_STR("T"), floats, 2}, {MT_STR("U"), floats, 2}};
__attribute__((unused)) static const MtOutput truth[] = {{N("out"), .dtype_rule = MT_FIXED, .dtype = MT_BOOL}};
"""


def writing(json, kind="MT_KIND_FLOAT"):
    text = '"' + json.replace('"', '\\"') + '"'
    return PROGRAM.replace("JSON", text).replace("KIND", kind)


# `x · scale` where the mask is set: `select(m, x · scale, x)`.
SCALED = (
    '{"inputs": ["x", "m"], "uniforms": ["scale"], "nodes": [["input", 0], ["uniform", 0], ["multiply", 0, 1], '
    '["input", 1], ["truthy", 3], ["select", 4, 2, 0]], "outputs": [["out", 5]]}'
)
DOUBLED = '{"inputs": ["x"], "uniforms": [], "nodes": [["input", 0], ["add", 0, 0]], "outputs": [["out", 1]]}'
SUMMED = (
    '{"inputs": ["x", "m"], "uniforms": [], "nodes": [["input", 0], ["input", 1], ["add", 0, 1]], '
    '"outputs": [["out", 2]]}'
)
ALONE = ".kernels = 0, .n_kernels = 0, .program = program, .backward_kind = MT_FROM_PROGRAM, .backward = {0},"
MASKED = ALONE + ".inputs = mask, .n_inputs = 2, .attrs = scale, .n_attrs = 1,"


def test_a_program_without_kernels_may_take_bools():
    with loaded(library(code=writing(SCALED), op=MASKED)):
        x, m = mt.Tensor([1.0, 2.0, 3.0], dtype="float64"), mt.Tensor([True, False, True])
        assert mt.ops.probe(x, m).tolist() == [1.5, 2.0, 4.5]
        assert mt.ops.probe(x[::2], m[::2], scale=3.0).tolist() == [3.0, 9.0]
        assert mt.testing.opcheck("probe").findings == []


def test_a_program_without_kernels_is_fused_with_built_in_ops():
    with loaded(library(code=writing(SCALED), op=MASKED)):

        def function(x, m):
            return mt.ops.probe(x * 2, m, scale=3.0).tanh() + 1

        x, m = mt.Tensor([1.0, 2.0, 3.0], requires_grad=True), mt.Tensor([True, False, True])
        f = mt.jit(function)
        for _ in range(2):
            y = f(x, m)
            assert y.tolist() == function(x, m).tolist()
            assert mt.grad(y.sum(), x)[0].tolist() == mt.grad(function(x, m).sum(), x)[0].tolist()
        assert f.graphs[0].ops == ["fused(multiply, probe, tanh, add)"]


def test_a_plugin_is_asked_once_for_the_example_of_its_program(capfd):
    doubled = DOUBLED.replace('["x"]', '["x", "m"]')
    code = "#include <stdio.h>\n" + writing(doubled).replace("give(sink,", 'puts("asked"), fflush(stdout), give(sink,')
    with loaded(library(code=code, op=ALONE + ".inputs = optional, .n_inputs = 2,")):
        assert capfd.readouterr().out == "asked\n"
        assert mt.ops.probe(mt.Tensor(X)).tolist() == [2.0, 4.0]


ALONE_FAULTS = [
    (
        SUMMED,
        "MT_KIND_FLOAT",
        MASKED + ".n_attrs = 0,",
        "invalid program: an input of truth values is used as a number",
    ),
    (
        SCALED,
        "MT_KIND_INT",
        MASKED,
        r'its program: it has the uniforms \["scale"\], but the table of the op has \[\]',
    ),
    (
        SCALED,
        "MT_KIND_FLOAT",
        MASKED + ".inputs = optional,",
        "its program: the program reads 'm', which is not given",
    ),
    (
        DOUBLED,
        "MT_KIND_FLOAT",
        ALONE + ".generics = more, .n_generics = 2,",
        "a program needs one dtype variable, but its",
    ),
    (
        DOUBLED,
        "MT_KIND_FLOAT",
        ALONE + ".outputs = truth,",
        "its program has the outputs .*Generic.*but its table has .*Fixed",
    ),
]


@pytest.mark.parametrize(("json", "kind", "op", "words"), ALONE_FAULTS)
def test_a_program_without_kernels_matches_its_table(json, kind, op, words):
    refuses(library(code=writing(json, kind), op=op), ValueError, alone(words))


BESIDE = [
    (DOUBLED.replace('"x"', '"y"'), r'its program: it has the inputs \["y"\], but the table of the op has \["x"\]'),
    (DOUBLED.replace('"out"', '"oot"'), r'its program: it has the outputs \["oot"\], but the table of the op has'),
    (
        DOUBLED.replace("[]", '["k"]', 1),
        r'its program: it has the uniforms \["k"\], but the table of the op has \[\]',
    ),
]


@pytest.mark.parametrize(("json", "words"), BESIDE)
def test_a_program_next_to_kernels_has_the_names_of_the_table(json, words):
    op = ".program = program, .backward_kind = MT_FROM_PROGRAM, .backward = {0},"
    code = writing(json) + "__attribute__((unused)) static const void *used[] = {scale, mask};"
    with loaded(library(code=code, op=op)):
        x = mt.Tensor(X, requires_grad=True)
        y = mt.ops.probe(x)
        assert y.tolist() == [2.0, 4.0]
        with pytest.raises(ValueError, match=f"op 'probe': {words}"):
            y.sum().backward()


# Programs of rows: `scale · weight · Σ x`, with one value per row as input and as output.

WEIGHED = """
#define WEIGHED(name, T) \\
  static int32_t name(const void *context, const MtValue *attrs, const MtCell *args, int64_t n, MtError *error) { \\
    (void)context, (void)error; \\
    for (int64_t i = 0; i < n; i++) { \\
      double sum = 0; \\
      for (size_t j = 0; j < args[0].shape[0]; j++) \\
        sum += ((const T *)((const char *)args[0].data + i * args[0].step))[j]; \\
      *(T *)((char *)args[2].data + i * args[2].step) = \\
        (T)(attrs[0].as.f * *(const T *)((const char *)args[1].data + i * args[1].step) * sum); \\
    } \\
    return MT_OK; \\
  }
WEIGHED(weighed_f32, float)
WEIGHED(weighed_f64, double)
static const MtKernel weighed[] = {{.dtypes = {MT_FLOAT32}, .run.cells = weighed_f32},
                                   {.dtypes = {MT_FLOAT64}, .run.cells = weighed_f64}};
static const MtInput row[] = {{N("x"), .core = MT_SLICE}, {N("weight")}};
__attribute__((unused)) static const void *used[] = {mask};
"""
WEIGHED_PROGRAM = (
    '{"inputs": ["x"], "uniforms": ["weight", "scale"], "nodes": [["input", 0], ["sum", 0], ["uniform", 0], '
    '["multiply", 2, 1], ["uniform", 1], ["multiply", 4, 3]], "outputs": [["out", 5]]}'
)
WEIGHED_OP = (
    ".body = MT_CELLS, .kernels = weighed, .inputs = row, .n_inputs = 2, .attrs = scale, .n_attrs = 1, "
    '.shape = MT_STR("(x: [.., n], weight: [..]) -> [..]"), '
    ".program = program, .backward_kind = MT_FROM_PROGRAM, .backward = {0},"
)


@pytest.mark.parametrize("kernels", [".kernels = weighed,", ".kernels = 0, .n_kernels = 0,"])
def test_the_program_of_a_row_has_numbers_for_a_row_as_uniforms(kernels):
    op = WEIGHED_OP.replace(".kernels = weighed,", kernels)
    with loaded(library(code=writing(WEIGHED_PROGRAM) + WEIGHED, op=op)):
        assert mt.ops.describe("probe")["program"] == "out = scale * (weight * sum(x))"
        assert mt.testing.opcheck("probe").findings == []
        x, weight = mt.Tensor([[1.0, 2.0], [3.0, 4.0]], dtype="float64"), mt.Tensor([5.0, 6.0], dtype="float64")
        assert mt.testing.gradcheck(mt.ops.probe, [x, weight], orders=3)


def test_the_program_of_a_row_takes_no_other_cells():
    op = WEIGHED_OP.replace("(x: [.., n], weight: [..])", "(x: [.., n, m], weight: [..])")
    words = alone("a program of cells describes a row, so 'x' must be a scalar, or have the core MT_SLICE")
    refuses(library(code=writing(WEIGHED_PROGRAM) + WEIGHED, op=op), ValueError, words)


#: `|x|` of doubles, by the bits.
MAGNITUDE = (
    '{"inputs": ["x"], "uniforms": [], "nodes": [["input", 0], ["bits", 9223372036854775807], ["bits_and", 0, 1]], '
    '"outputs": [["out", 2]]}'
)


@pytest.mark.usefixtures("registered")
def test_programs_may_have_bits():
    with loaded(library(code=writing(MAGNITUDE), op=ALONE)):

        @mt.element_op(name="programs::twice")
        def twice(x):
            """Twice the magnitude."""
            return 2 * mt.ops.probe(x)

        x = mt.Tensor([-1.5, 2.0, -0.0, math.nan], dtype="float64")
        for function in (mt.ops.probe, mt.jit(lambda x: mt.ops.probe(x))):
            np.testing.assert_array_equal(function(x).numpy(), [1.5, 2.0, 0.0, math.nan])
        np.testing.assert_array_equal(twice(x).numpy(), [3.0, 4.0, 0.0, math.nan])
