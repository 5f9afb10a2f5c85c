"""The tables that a library hands over, read with distrust; and what its functions may do wrong."""

import pytest
from c_plugin import library, loaded, refuses, state

import minitensor as mt

pytestmark = pytest.mark.usefixtures("no_plugins_stay")

X = [1.0, 2.0]

# An op of each kind of body, for tables that differ from it.
CELLS = """
static int32_t cells(const void *context, const MtValue *attrs, const MtCell *args, int64_t n, MtError *error) {
  (void)context, (void)attrs, (void)args, (void)n, (void)error;
  return MT_OK;
}
static const MtKernel cell_kernels[] = {{.dtypes = {MT_FLOAT32}, .run.cells = cells},
                                        {.dtypes = {MT_FLOAT64}, .run.cells = cells}};
"""
CALL = """
#define UNUSED __attribute__((unused))
UNUSED static int32_t call(const MtCall *call, MtError *error) {
  (void)call, (void)error;
  CALL
  return MT_OK;
}
UNUSED static int32_t infer(const void *context, const MtMeta *inputs, int32_t n_inputs, const MtValue *attrs,
                            int32_t n_attrs, MtMeta *outputs, int32_t n_outputs, MtError *error) {
  (void)context, (void)n_inputs, (void)attrs, (void)n_attrs, (void)n_outputs, (void)error;
  outputs[0] = inputs[0];
  INFER
  return MT_OK;
}
"""
ARRAYS = ".body = MT_ARRAYS, .call = call, .infer = infer, .backward_kind = MT_NOT_NEEDED,"
TENSORS = ".body = MT_TENSORS, .call = call, .backward_kind = MT_TRACED,"


def bodies(call="", infer=""):
    return CALL.replace("CALL", call).replace("INFER", infer)


def alone(words):
    return f"plugin 'faulty': op 'probe': {words}"


# The fields that differ, what is defined before, and what is said.
TABLES = {
    ".struct_size = 8,": ("", "plugin 'faulty': the table of an op says it has 8 bytes, where one has 320"),
    ".struct_size = 1 << 20,": ("", "plugin 'faulty': the table of an op says it has 1048576 bytes, where one has"),
    ".name = {0},": ("", "plugin 'faulty': an op has no name"),
    ".name = {0, 7},": ("", "plugin 'faulty': the name of an op: a text is a null pointer"),
    '.name = MT_STR("a\\0b"),': ("", r'plugin \'faulty\': the name of an op: the text "a\\0b" holds a NUL'),
    '.name = MT_STR("\\xff"),': ("", "plugin 'faulty': the name of an op: a text is no valid UTF-8"),
    '.name = MT_STR("2x"),': ("", "plugin 'faulty': '2x' is no name for an op: use letters, digits and '_'"),
    '.name = MT_STR("square"),': ("", r"plugin 'faulty': op 'square' is registered already: by ops/src/.*rs:\d+, and"),
    ".doc = {0, 7},": ("", alone("a text is a null pointer")),
    ".n_inputs = -1,": ("", alone("it can't have -1 inputs")),
    ".n_attrs = 1000000,": ("", alone("it can't have 1000000 attrs")),
    ".inputs = 0,": ("", alone("'inputs' has a pointer that can't be")),
    ".inputs = (const MtInput *)3,": ("", alone("'inputs' has a pointer that can't be")),
    ".n_generics = 0,": ("", alone("'x': there is no dtype by the rule 0 at 0")),
    ".n_outputs = 0, .backward_kind = MT_NOT_NEEDED,": (
        "",
        alone("it has no outputs; only a body over tensors may be"),
    ),
    ".n_inputs = 0, .backward_kind = MT_NOT_NEEDED,": ("", alone("it has no inputs; only a body over tensors may be")),
    ".axis = 1,": ("", alone("its 'axis' is the attribute 1 of 0")),
    ".axis = -1,": ("", alone("its 'axis' is the attribute -1 of 0")),
    ".body = 0,": ("", alone("0 is no kind of body")),
    ".body = 77,": ("", alone("77 is no kind of body")),
    ".n_kernels = 0,": ("", alone("it has no kernels")),
    ".kernels = 0,": ("", alone("'kernels' has a pointer that can't be")),
    ".n_kernels = 1,": ("", alone("it has no kernel for float64, which its dtype variables can be")),
    ".kernels = null_kernels,": (
        "static const MtKernel null_kernels[2] = {{.dtypes = {MT_FLOAT32}}, {.dtypes = {MT_FLOAT64}}};",
        alone("a kernel is a null pointer"),
    ),
    '.shape = MT_STR("(x: [.., n]) -> [.., n]"),': (
        "",
        "shape clause '.*': the inputs of an element op broadcast; write",
    ),
    ".body = MT_CELLS, .kernels = cell_kernels,": (CELLS, alone("a body of cells needs a shape, such as '")),
    '.body = MT_CELLS, .kernels = cell_kernels, .shape = MT_STR("(x: [.., n) -> [.., n]"),': (
        CELLS,
        r"op 'probe': shape clause '\(x: \[\.\., n\) -> \[\.\., n\]': ",
    ),
    '.body = MT_CELLS, .kernels = cell_kernels, .shape = MT_STR("(y: [.., n]) -> [.., n]"),': (
        CELLS,
        r"op 'probe': shape clause '\(y: .*': .*'y'",
    ),
    '.body = MT_CELLS, .kernels = cell_kernels, .shape = MT_STR("(x: [.., n]) -> [.., n]"),': (
        CELLS,
        alone("'x' has dimensions in the shape, and is a scalar: give it the core MT_SLICE or MT_VIEW"),
    ),
    ".body = MT_ARRAYS, .infer = infer,": (bodies(), alone("its 'call' is a null")),
    ".body = MT_ARRAYS, .call = call,": (bodies(), alone("a body over arrays needs 'infer' or a shape")),
    ".body = MT_TENSORS,": ("", alone("its 'call' is a null pointer")),
    '.backward = MT_STR("|d| { x: d * "),': ("", r"op 'probe': backward clause '\|d\| \{ x: d \*': "),
    '.backward = MT_STR("|d| { y: d }"),': ("", r"op 'probe': backward clause '\|d\| \{ y: d \}': .*'y'"),
    '.backward = MT_STR("|d| { x: d * k }"),': ("", r"op 'probe': backward clause '.*': .*'k'"),
    ".backward_kind = 99,": ("", alone("99 is no kind of gradient")),
    ".backward_kind = MT_GRADIENT_FN,": ("", alone("its 'gradient' is a null pointer")),
    ".backward_kind = MT_VJP,": ("", alone("its gradient: an op is a null pointer")),
    ".backward_kind = MT_VJP, .vjp = &op,": ("static const MtOp op;", alone("it is its own gradient")),
    ".backward_kind = MT_TRACED,": ("", alone("only a gradient of a body over tensors can be traced")),
    ".backward_kind = MT_FROM_PROGRAM,": ("", alone("its gradient follows from a program, which it doesn't have")),
}
# A list that differs, the fields that name it, and what is said.
LISTS = [
    ('MtInput odd[] = {{N("x y")}}', ".inputs = odd,", 'an input is named "x y"; use letters, digits and'),
    (
        'MtInput odd[] = {{N("lambda")}}',
        ".inputs = odd,",
        "an input is named 'lambda', a word that Python keeps for itself",
    ),
    ('MtInput odd[] = {{N("x"), .arity = 9}}', ".inputs = odd,", "input 'x': 9 is no arity that its body can take"),
    ('MtInput odd[] = {{N("x"), .core = 9}}', ".inputs = odd,", "input 'x': 9 is no core"),
    ('MtInput odd[] = {{N("x"), .dtype_rule = MT_FIXED, .dtype = 5}}', ".inputs = odd,", "'x': 0x00000005 is no dtype"),
    ('MtInput odd[] = {{N("x")}, {N("x")}}', ".inputs = odd, .n_inputs = 2,", "two of its parameters are named 'x'"),
    (
        'MtInput odd[] = {{N("x"), .is_mutated = 1}}',
        ".inputs = odd,",
        "input 'x' is changed in place, which no output says by MT_MUTATES",
    ),
    ('MtOutput odd[] = {{N("out"), .role = 9}}', ".outputs = odd,", "output 'out': 9 is no role"),
    ('MtOutput odd[] = {{N("out"), .role = 2}}', ".outputs = odd,", "output 'out': 0 is no input that is changed"),
    (
        'MtOutput odd[] = {{N("out"), .dtype_rule = MT_FROM_ATTR}}',
        ".outputs = odd,",
        "'out': there is no dtype by the rule 2 at 0",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = 99}}',
        ".attrs = odd, .n_attrs = 1,",
        "attribute 'k': 99 is no kind of attribute",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = 6}}',
        ".attrs = odd, .n_attrs = 1,",
        "attribute 'k': there are no words that it",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = 3, .has_default = 1, .value = {.kind = MT_KIND_INT, .as.i = -1}}}',
        ".attrs = odd, .n_attrs = 1,",
        "the default of 'k': ",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = 4, .has_default = 1, .value = {.kind = MT_KIND_STR, .as.list = {0, 9}}}}',
        ".attrs = odd, .n_attrs = 1,",
        "the default of 'k': a text is a null pointer",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = MT_KIND_BOOL}}',
        ".attrs = odd, .n_attrs = 1, .axis = 1,",
        "its 'axis' must be of the kind MT_KIND_INT",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = 1}}; static const MtOutput of_k[] = {{N("out"), .dtype_rule = MT_FROM_ATTR}}',
        ".outputs = of_k, .attrs = odd, .n_attrs = 1,",
        "'out' has the dtype of 'k', which is no dtype",
    ),
    ('MtGeneric odd[] = {{MT_STR("T"), floats, 0}}', ".generics = odd,", "the dtype variable 'T' can be no dtype"),
    (
        'MtDType none[] = {7}; static const MtGeneric odd[] = {{MT_STR("T"), none, 1}}',
        ".generics = odd,",
        "'T': 0x00000007 is no dtype",
    ),
]


@pytest.mark.parametrize(("op", "code", "words"), [(op, *rest) for op, rest in TABLES.items()], ids=TABLES)
def test_a_table_that_is_wrong_is_refused(op, code, words):
    refuses(library(code=code, op=op), ValueError, words)


@pytest.mark.parametrize(("item", "op", "words"), LISTS)
def test_a_list_that_is_wrong_is_refused(item, op, words):
    refuses(
        library(code=f"#define N(text) .name = MT_STR(text)\nstatic const {item};", op=op), ValueError, alone(words)
    )


def test_a_null_op_is_refused():
    refuses(library(init="return host->register_op(host, 0, error);"), ValueError, "plugin 'faulty': an op is a null")


# Kernels.

FAILURES = {
    'return mt_fail(error, MT_ERROR_VALUE, "x is %d", 7);': (ValueError, "op 'probe': x is 7"),
    "return MT_ERROR_INDEX;": (IndexError, "op 'probe': it failed, and doesn't say why"),
    "return 1234;": (RuntimeError, "op 'probe': .*the code 1234, which means nothing: a fault of the plugin"),
    'return mt_fail(error, MT_PANIC, "boom");': (
        RuntimeError,
        "op 'probe': the plugin panicked: boom; this is a fault",
    ),
}


@pytest.mark.parametrize(("body", "expected"), FAILURES.items(), ids=FAILURES)
def test_a_kernel_that_fails_raises_and_the_next_call_works(body, expected):
    code = """
    static int32_t failing(const void *context, const MtValue *attrs, int64_t n, const void *const *in,
                           void *const *out, MtError *error) {
      if (*(const float *)in[0] < 0) { BODY }
      return kernel_f32(context, attrs, n, in, out, error);
    }
    static const MtKernel failing_kernels[] = {{.dtypes = {MT_FLOAT32}, .run.elements = failing},
                                               {.dtypes = {MT_FLOAT64}, .run.elements = kernel_f64}};
    """
    with loaded(library(code=code.replace("BODY", body), op=".kernels = failing_kernels,")):
        before = state()
        for _ in range(2):
            with pytest.raises(expected[0], match=expected[1]):
                mt.ops.probe(mt.Tensor([-1.0]))
            assert mt.ops.probe(mt.Tensor(X)).tolist() == [2.0, 4.0]
        assert state() == before


def test_a_formula_that_calls_an_op_that_is_not_there_fails_at_its_first_call():
    with loaded(library(op='.backward = MT_STR("|d| { x: nowhere::sinn(d) }"),')):
        x = mt.Tensor(X, requires_grad=True)
        y = mt.ops.probe(x)
        assert y.tolist() == [2.0, 4.0]
        with pytest.raises(Exception, match=r"op 'probe'.*nowhere::sinn") as raised:
            y.sum().backward()
        assert type(raised.value) in (ValueError, RuntimeError)


# Inference.

INFERENCES = {
    "outputs[0].shape[0] = -3;": (RuntimeError, "its inference gives a dimension of size -3 for the output 'out'"),
    "outputs[0].ndim = 1000;": (RuntimeError, "its inference gives 1000 dimensions for the output 'out'"),
    "outputs[0].ndim = -1;": (RuntimeError, "its inference gives -1 dimensions for the output 'out'"),
    "outputs[0].dtype = 9;": (RuntimeError, "its inference gives 0x00000009 is no dtype for the output 'out'"),
    "outputs[0].shape[0] = INT64_MAX;": ((MemoryError, ValueError), "."),
    'return mt_fail(error, MT_ERROR_TYPE, "never");': (TypeError, "never"),
    "return -5;": (RuntimeError, "the code -5, which means nothing"),
}


@pytest.mark.parametrize(("infer", "expected"), INFERENCES.items(), ids=INFERENCES)
def test_an_inference_that_is_wrong_raises(infer, expected):
    with (
        loaded(library(code=bodies(infer=infer), op=ARRAYS)),
        pytest.raises(expected[0], match="op 'probe': .*" + expected[1]),
    ):
        mt.ops.probe(mt.Tensor(X))


def test_a_shape_that_inference_gets_wrong_is_the_shape_of_the_result():
    with loaded(library(code=bodies(infer="outputs[0].ndim = 2; outputs[0].shape[1] = 3;"), op=ARRAYS)):
        assert mt.ops.probe(mt.Tensor(X)).shape == (2, 3)


def test_more_dimensions_than_the_abi_has_are_refused():
    with (
        loaded(library(code=bodies(), op=ARRAYS)),
        pytest.raises(ValueError, match="op 'probe': takes tensors of at most 32 dimensions, got 33"),
    ):
        mt.ops.probe(mt.zeros(*[1] * 33))


# Bodies over tensors.

GIVEN = {
    "": (RuntimeError, "its body gave 0 outputs where it declares 1"),
    "call->give(call->sink, 0);": (RuntimeError, "its body gave a null pointer as an output"),
    "for (int i = 0; i < 2; i++) call->give(call->sink, host->tensor_retain(call->inputs[0]));": (
        RuntimeError,
        "its body gave 2 outputs where it declares 1",
    ),
}


@pytest.mark.parametrize(("call", "expected"), GIVEN.items(), ids=GIVEN)
def test_a_body_that_gives_the_wrong_tensors_raises(call, expected):
    with (
        loaded(library(code=bodies(call), op=TENSORS)),
        pytest.raises(expected[0], match="op 'probe': " + expected[1]),
    ):
        mt.ops.probe(mt.Tensor(X))


CALLS = """
  MtOpRef *other = host->op_find(mt_str("NAME"), error);
  if (!other) return MT_ERROR_VALUE;
  MtArg arg = {.tensor = call->inputs[0]};
  MtTensor *out = 0;
  size_t n = ROOM;
  int32_t code = host->op_call(other, &arg, 1, 0, 0, 0, &out, &n, error);
  host->op_release(other);
  if (code) return code;
  call->give(call->sink, out);
"""


def calling(name, room=1):
    return library(code=bodies(CALLS.replace("NAME", name).replace("ROOM", str(room))), op=TENSORS)


def test_an_op_that_calls_another_has_its_gradient():
    with loaded(calling("exp")):
        assert mt.testing.opcheck("probe").findings == []


def test_a_call_of_an_op_that_is_not_there_says_so():
    with loaded(calling("expp")), pytest.raises(ValueError, match="op 'probe': .*'expp'.*did you mean 'exp'"):
        mt.ops.probe(mt.Tensor(X))


def test_a_call_without_room_for_its_outputs_says_so():
    with (
        loaded(calling("exp", room=0)),
        pytest.raises(ValueError, match="op 'probe': op 'exp' gives 1 tensors, there is room for 0"),
    ):
        mt.ops.probe(mt.Tensor(X))


class Peculiar(Exception):
    """An exception that only Python knows."""


@pytest.mark.usefixtures("registered")
def test_an_exception_of_python_goes_through_a_plugin_unharmed():
    cause = Peculiar("very", 7)

    def forward(x):
        raise cause

    mt.CustomOpBuilder("peculiar", 1).forward(forward).register()
    with loaded(calling("peculiar")):
        with pytest.raises(Peculiar) as raised:
            mt.ops.probe(mt.Tensor(X))
        assert raised.value is cause
