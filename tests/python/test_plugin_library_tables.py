"""Tests of the validation of a library's tables."""

import pytest
from c_plugin import ARRAYS, CELLS, TENSORS, alone, bodies, library, loaded, refuses

import minitensor as mt

pytestmark = pytest.mark.usefixtures("no_plugins_stay")

X = [1.0, 2.0]


# The fields that differ, the preceding definitions, and the message.
TABLES = {
    ".struct_size = 8,": ("", "plugin 'faulty': the table of an op has 8 bytes, expected at least 320"),
    ".struct_size = 1 << 20,": ("", "plugin 'faulty': the table of an op has 1048576 bytes, expected at least"),
    ".name = {0},": ("", "plugin 'faulty': an op has no name"),
    ".name = {0, 7},": ("", "plugin 'faulty': the name of an op: a string is a null pointer"),
    '.name = MT_STR("a\\0b"),': ("", r'plugin \'faulty\': the name of an op: the string "a\\0b" contains a NUL'),
    '.name = MT_STR("\\xff"),': ("", "plugin 'faulty': the name of an op: a string is not valid UTF-8"),
    '.name = MT_STR("2x"),': (
        "",
        "plugin 'faulty': '2x' is not a valid name of an op; use ASCII letters, digits and '_'",
    ),
    '.name = MT_STR("square"),': ("", r"plugin 'faulty': op 'square' is already registered: by ops/src/.*rs:\d+, and"),
    '.name = {"x", 100000},': ("", "the name of an op: a string has 100000 bytes, expected at most 255"),
    '.name = {"x", (size_t)-1},': (
        "",
        f"plugin 'faulty': the name of an op: a string has {2**64 - 1} bytes, expected at most 255",
    ),
    ".doc = {0, 7},": ("", alone("its doc: a string is a null pointer")),
    '.doc = {"x", (size_t)-1},': ("", alone(f"its doc: a string has {2**64 - 1} bytes, expected at most 1048576")),
    '.file = {"x", (size_t)-1},': ("", alone(f"its file: a string has {2**64 - 1} bytes, expected at most 4096")),
    '.file = MT_STR("a\\33[2Jb"),': (
        "",
        alone(r"its file: the string \"a\\u\{1b\}\[2Jb\" contains a control character"),
    ),
    '.shape = {"x", (size_t)-1},': ("", alone(f"its shape: a string has {2**64 - 1} bytes, expected at most 65536")),
    '.backward = {"x", (size_t)-1},': (
        "",
        alone(f"its backward: a string has {2**64 - 1} bytes, expected at most 65536"),
    ),
    ".aliases = long_names, .n_aliases = 1,": (
        'static const MtStr long_names[] = {{"x", (size_t)-1}};',
        alone(f"the name of an alias: a string has {2**64 - 1} bytes, expected at most 255"),
    ),
    ".aliases = (const MtStr *)8, .n_aliases = (size_t)-1,": (
        "",
        alone(f"'aliases' has {2**64 - 1} items, expected at most 64"),
    ),
    ".n_kernels = 1000,": ("", alone("'kernels' has 1000 items, expected at most 256")),
    ".n_inputs = -1,": ("", alone("invalid number of inputs: -1")),
    ".n_attrs = 1000000,": ("", alone("invalid number of attrs: 1000000")),
    ".inputs = 0,": ("", alone("the pointer of 'inputs' is null or not aligned")),
    ".inputs = (const MtInput *)3,": ("", alone("the pointer of 'inputs' is null or not aligned")),
    ".n_generics = 0,": ("", alone("'x': invalid dtype rule 0 with index 0")),
    ".n_outputs = 0, .backward_kind = MT_NOT_NEEDED,": (
        "",
        alone("it has no outputs, which only a body over tensors supports"),
    ),
    ".n_inputs = 0, .backward_kind = MT_NOT_NEEDED,": (
        "",
        alone("it has no inputs, which only a body over tensors supports"),
    ),
    ".axis = 1,": ("", alone("its 'axis' is attribute 1, but the number of attributes is 0")),
    '.name = MT_STR("ns::class"),': (
        "",
        "'ns::class' is not a valid name of an op: 'class' is a Python keyword; choose",
    ),
    '.name = MT_STR("__getattr__"),': (
        "",
        "'__getattr__' is not a valid name of an op: names that begin with '__' are",
    ),
    '.name = MT_STR("describe"),': (
        "",
        "op 'describe' cannot be registered: minitensor.ops.describe already exists",
    ),
    ".axis = -1,": ("", alone("its 'axis' is attribute -1, but the number of attributes is 0")),
    ".body = 0,": ("", alone("unknown kind of body 0")),
    ".body = 77,": ("", alone("unknown kind of body 77")),
    ".n_kernels = 0,": ("", alone("it has no kernels")),
    ".kernels = 0,": ("", alone("the pointer of 'kernels' is null or not aligned")),
    ".n_kernels = 1,": ("", alone("it has no kernel for float64, which its dtype variables include")),
    ".kernels = null_kernels,": (
        "static const MtKernel null_kernels[2] = {{.dtypes = {MT_FLOAT32}}, {.dtypes = {MT_FLOAT64}}};",
        alone("a kernel is a null pointer"),
    ),
    '.shape = MT_STR("(x: [.., n]) -> [.., n]"),': (
        "",
        "op 'probe': shape clause: an element op cannot have a 'shape' clause; for rows, write 'R: Row'",
    ),
    ".body = MT_CELLS, .kernels = cell_kernels,": (CELLS, alone("a body of cells needs a shape, such as '")),
    '.body = MT_CELLS, .kernels = cell_kernels, .shape = MT_STR("(x: [.., n) -> [.., n]"),': (
        CELLS,
        r"op 'probe': shape clause: expected ',' or '\]', found '\)'.*\n  \(x: \[\.\., n\) -> \[\.\., n\]\n {12}\^\n",
    ),
    '.body = MT_CELLS, .kernels = cell_kernels, .shape = MT_STR("(y: [.., n]) -> [.., n]"),': (
        CELLS,
        "op 'probe': shape clause: there is no input 'y'; the only name is 'x'",
    ),
    '.body = MT_CELLS, .kernels = cell_kernels, .shape = MT_STR("(x: [.., n]) -> [.., n]"),': (
        CELLS,
        alone("'x' has dimensions in the shape, but its core is MT_SCALAR; use the core MT_SLICE or MT_VIEW"),
    ),
    ".body = MT_ARRAYS, .infer = infer,": (bodies(), alone("its 'call' is a null")),
    ".body = MT_ARRAYS, .call = call,": (bodies(), alone("a body over arrays needs 'infer' or a shape")),
    ".body = MT_TENSORS,": ("", alone("its 'call' is a null pointer")),
    '.backward = MT_STR("|d| { x: d * "),': (
        "",
        r"op 'probe': backward clause: expected a value, found the end.*\n  \|d\| \{ x: d \*\n {14}\^\n",
    ),
    '.backward = MT_STR("|d| { y: d }"),': (
        "",
        "op 'probe': backward clause: 'y' is not an input of the op; the only name is 'x'",
    ),
    '.backward = MT_STR("|d| { x: d * k }"),': (
        "",
        "op 'probe': backward clause: unknown name 'k' in the formula; the names are",
    ),
    ".backward_kind = 99,": ("", alone("unknown kind of gradient 99")),
    ".backward_kind = MT_GRADIENT_FN,": ("", alone("its 'gradient' is a null pointer")),
    ".backward_kind = MT_VJP,": ("", alone("its gradient: an op is a null pointer")),
    ".backward_kind = MT_VJP, .vjp = &op,": ("static const MtOp op;", alone("its gradient must not be the op itself")),
    ".backward_kind = MT_COMPOSITE,": ("", alone("a gradient by the ops of the body requires a body over tensors")),
    ".backward_kind = MT_FROM_PROGRAM,": ("", alone("its gradient is derived from its program, but it has no program")),
}
# A list that differs, the fields that refer to it, and the message.
LISTS = [
    (
        'MtInput odd[] = {{N("x y")}}',
        ".inputs = odd,",
        "'x y' is not a valid name of an input; use ASCII letters, digits and",
    ),
    (
        'MtInput odd[] = {{N("lambda")}}',
        ".inputs = odd,",
        "'lambda' is not a valid name of an input: 'lambda' is a Python keyword",
    ),
    ('MtInput odd[] = {{N("x"), .arity = 9}}', ".inputs = odd,", "input 'x': invalid arity for its kind of body: 9"),
    ('MtInput odd[] = {{N("x"), .core = 9}}', ".inputs = odd,", "input 'x': invalid core 9"),
    (
        'MtInput odd[] = {{N("x"), .dtype_rule = MT_FIXED, .dtype = 5}}',
        ".inputs = odd,",
        "'x': unknown dtype 0x00000005",
    ),
    ('MtInput odd[] = {{N("x")}, {N("x")}}', ".inputs = odd, .n_inputs = 2,", "the name 'x' is used twice"),
    (
        'MtInput odd[] = {{N("x"), .is_mutated = 1}}',
        ".inputs = odd,",
        "input 'x' is changed in place, but no output has the role MT_MUTATES for it",
    ),
    (
        'MtInput odd[] = {{N("x"), .is_mutated = 1}};'
        'static const MtOutput changed[] = {{N("out"), .role = MT_MUTATES}};' + bodies(),
        ".inputs = odd, .outputs = changed," + ARRAYS,
        "input 'x' is changed in place, which only a body of elements or cells supports",
    ),
    (
        'MtInput odd[] = {{N("x"), .arity = MT_VARIADIC, .dtype_rule = MT_ANY}, {N("y"), .dtype_rule = MT_ANY}};'
        + bodies(),
        ".inputs = odd, .n_inputs = 2," + TENSORS,
        "the tensor list 'x' is not the last tensor",
    ),
    (
        'MtInput odd[] = {{N("x"), .dtype_rule = MT_FROM_ATTR}}; static const MtAttr k[] = {{N("k"), .kind = 9}}',
        ".inputs = odd, .attrs = k, .n_attrs = 1,",
        "input 'x' takes its dtype from an attribute, which only outputs support",
    ),
    (
        'MtOutput odd[] = {{N("a")}, {N("a")}}',
        ".outputs = odd, .n_outputs = 2,",
        "the name 'a' is used twice",
    ),
    (
        'MtOutput odd[] = {{N("a")}, {N("_b")}}',
        ".outputs = odd, .n_outputs = 2,",
        "the name of output '_b' must not start with '_', because several outputs form a named tuple",
    ),
    ('MtOutput odd[] = {{N("out"), .role = 9}}', ".outputs = odd,", "output 'out': invalid role 9"),
    (
        'MtOutput odd[] = {{N("out"), .role = 2}}',
        ".outputs = odd,",
        "output 'out': invalid position of an input that is changed in place: 0",
    ),
    (
        'MtOutput odd[] = {{N("out"), .dtype_rule = MT_FROM_ATTR}}',
        ".outputs = odd,",
        "'out': invalid dtype rule 2 with index 0",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = 99}}',
        ".attrs = odd, .n_attrs = 1,",
        "attribute 'k': unknown kind of attribute 99",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = 6}}',
        ".attrs = odd, .n_attrs = 1,",
        "attribute 'k': its list of words is empty",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = 3, .has_default = 1, .value = {.kind = MT_KIND_INT, .as.i = -1}}}',
        ".attrs = odd, .n_attrs = 1,",
        "the default of 'k': ",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = 4, .has_default = 1, .value = {.kind = MT_KIND_STR, .as.list = {0, 9}}}}',
        ".attrs = odd, .n_attrs = 1,",
        "the default of 'k': a string is a null pointer",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = MT_KIND_BOOL}}',
        ".attrs = odd, .n_attrs = 1, .axis = 1,",
        "a body of elements has no 'axis'",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = 1}}; static const MtOutput of_k[] = {{N("out"), .dtype_rule = MT_FROM_ATTR}}',
        ".outputs = of_k, .attrs = odd, .n_attrs = 1,",
        "output 'out' takes its dtype from attribute 'k', which must be of the kind",
    ),
    (
        'MtInput odd[] = {{.name = {"x", (size_t)-1}}}',
        ".inputs = odd,",
        f"the name of an input: a string has {2**64 - 1} bytes, expected at most 255",
    ),
    (
        'MtStr few[] = {{"up", (size_t)-1}};'
        'static const MtAttr odd[] = {{N("k"), .kind = 6, .words = few, .n_words = 1}}',
        ".attrs = odd, .n_attrs = 1,",
        f"the words of 'k': a string has {2**64 - 1} bytes, expected at most 255",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = 6, .words = (const MtStr *)8, .n_words = 5000}}',
        ".attrs = odd, .n_attrs = 1,",
        "the words of 'k': 'words' has 5000 items, expected at most 1024",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = 5, .has_default = 1, .value = {.kind = MT_KIND_STR, .as.list = {"x", -1}}}}',
        ".attrs = odd, .n_attrs = 1,",
        f"the default of 'k': a string has {2**64 - 1} bytes, expected at most 16777216",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = 7, .has_default = 1,'
        ".value = {.kind = MT_KIND_INTS, .as.list = {inputs, -1}}}}",
        ".attrs = odd, .n_attrs = 1,",
        f"the default of 'k': 'ints' has {2**64 - 1} items, expected at most 1048576",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = 10}}',
        ".attrs = odd, .n_attrs = 1,",
        "attribute 'k': its candidates must be at most 64 integers, got None",
    ),
    (
        "int64_t twice[] = {4, 4}; static const MtAttr odd[] = "
        '{{N("k"), .kind = 10, .value = {.kind = MT_KIND_INTS, .as.list = {twice, 2}}}}',
        ".attrs = odd, .n_attrs = 1,",
        "the candidates of 'k' must be 1 to 64 different positive integers",
    ),
    (
        'MtAttr odd[] = {{N("k"), .kind = 10, .value = {.kind = MT_KIND_INTS, .as.list = {inputs, -1}}}}',
        ".attrs = odd, .n_attrs = 1,",
        f"the candidates of 'k': 'ints' has {2**64 - 1} items, expected at most 1048576",
    ),
    (
        'MtGeneric odd[] = {{MT_STR("T"), floats, 999}}',
        ".generics = odd,",
        "'dtypes' has 999 items, expected at most 15",
    ),
    (
        'MtGeneric odd[] = {{MT_STR("T"), floats, 0}}',
        ".generics = odd,",
        "the list of dtypes of the dtype variable 'T' is empty",
    ),
    (
        'MtDType none[] = {7}; static const MtGeneric odd[] = {{MT_STR("T"), none, 1}}',
        ".generics = odd,",
        "'T': unknown dtype 0x00000007",
    ),
]


@pytest.mark.parametrize(("op", "code", "words"), [(op, *rest) for op, rest in TABLES.items()], ids=TABLES)
def test_an_invalid_table_raises(op, code, words):
    refuses(library(code=code, op=op), ValueError, words)


@pytest.mark.parametrize(("item", "op", "words"), LISTS)
def test_an_invalid_list_raises(item, op, words):
    refuses(
        library(code=f"#define N(text) .name = MT_STR(text)\nstatic const {item};", op=op), ValueError, alone(words)
    )


def test_a_null_op_raises():
    refuses(library(init="return host->register_op(host, 0, error);"), ValueError, "plugin 'faulty': an op is a null")


# An op with an axis, whose clause and attribute differ.
AXIS = """
static const MtAttr axis[] = {{.name = MT_STR("axis"), .kind = KIND}};
static const MtInput rows[] = {{.name = MT_STR("x"), .core = MT_VIEW}};
static const MtOutput columns[] = {{.name = MT_STR("out"), .core = MT_VIEW}};
"""
AXIS_OP = (
    ".body = MT_CELLS, .kernels = cell_kernels, .inputs = rows, .outputs = columns, .attrs = axis, .n_attrs = 1, "
    ".axis = 1, .many_axes = MANY, .backward_kind = MT_NOT_NEEDED, .shape = MT_STR(SHAPE),"
)
AXES = [
    ("(x: [.., n]) -> [.., n]", 2, "its 'axis' must be of the kind MT_KIND_INTS"),
    ("(x: [.., n, m]) -> [.., n]", 0, "'x' is not supported in an op with an 'axis' clause"),
    ("(x: [.., 3]) -> [..]", 0, "'x' is not supported in an op with an 'axis' clause"),
    ("(x: [.., n]) -> [.., n / 2]", 0, "'out' is not supported in an op with an 'axis' clause"),
    ("(x: [.., n]) -> [.., n * 2]", 1, "'out' is not supported in an op with an 'axis' clause"),
]


@pytest.mark.parametrize(("shape", "many", "words"), AXES)
def test_an_axis_selects_one_dimension(shape, many, words):
    op = AXIS_OP.replace("SHAPE", f'"{shape}"').replace("MANY", str(many))
    code = CELLS + AXIS.replace("KIND", "MT_KIND_INTS" if many == 1 else "MT_KIND_INT")
    refuses(library(code=code, op=op), ValueError, alone(words))


# Gradients that are ops.

VJP = """
#define N(text) .name = MT_STR(text)
static const MtInput vjp_inputs[] = {{N("d")}, {N("x")}, {N("more")}};
static const MtOutput vjp_outputs[] = {{N("d_x")}};
__attribute__((unused)) static const MtAttr of_vjp[] = {{N("k"), .kind = MT_KIND_INT}, {N("l"), .kind = MT_KIND_INT}};
__attribute__((unused)) static const MtAttr of_op[] = {{N("k"), .kind = MT_KIND_FLOAT}};
__attribute__((unused)) static const MtOutput narrow[] = {{N("out"), .dtype_rule = MT_FIXED, .dtype = MT_FLOAT64}};
__attribute__((unused)) static const MtOutput pair[] = {{N("a")}, {N("b")}};
static const uint32_t wrt[] = {0};
static const MtOp vjp = {
  MT_OP("probe.vjp", "Twice `d`."), .inputs = vjp_inputs, .n_inputs = 2, .outputs = vjp_outputs, .n_outputs = 1,
  .generics = generics, .n_generics = 1, .body = MT_ELEMENTS, .kernels = kernels, .n_kernels = 2, VJP
};
"""
VJP_OP = ".backward_kind = MT_VJP, .backward = {0}, .vjp = &vjp, .wrt = wrt, .n_wrt = 1,"
VJPS = [
    (
        ".n_inputs = 3,",
        "",
        "its gradient 'probe.vjp' takes 3 tensors and returns 1; it must take 1 cotangent and 1 input",
    ),
    ("", ".outputs = pair, .n_outputs = 2,", "takes 2 tensors and returns 1; it must take 2 cotangents and 1 input"),
    (".attrs = of_vjp, .n_attrs = 2,", ".attrs = of_op, .n_attrs = 1,", r"has the attributes \(k, l\), which are not"),
    (".attrs = of_vjp, .n_attrs = 1,", ".attrs = of_op, .n_attrs = 1,", r"has the attributes \(k\), which are not the"),
]


@pytest.mark.parametrize(("vjp", "op", "words"), VJPS)
def test_a_gradient_of_another_shape_raises(vjp, op, words):
    refuses(library(code=VJP.replace(" VJP\n", f" {vjp}\n"), op=VJP_OP + op), ValueError, alone(".*" + words))


def test_an_output_of_one_dtype_has_a_cotangent():
    code = (
        VJP.replace(" VJP\n", "\n")
        + """
    static int32_t wide(const void *context, const MtValue *attrs, int64_t n, const void *const *in, void *const *out,
                        MtError *error) {
      (void)context, (void)attrs, (void)error;
      for (int64_t i = 0; i < n; i++) ((double *)out[0])[i] = 2 * ((const float *)in[0])[i];
      return MT_OK;
    }
    static const MtKernel wide_kernels[] = {{.dtypes = {MT_FLOAT32}, .run.elements = wide},
                                            {.dtypes = {MT_FLOAT64}, .run.elements = kernel_f64}};
    """
    )
    with loaded(library(code=code, op=VJP_OP + ".outputs = narrow, .kernels = wide_kernels,")):
        x = mt.Tensor(X, requires_grad=True)
        y = mt.ops.probe(x)
        assert (y.dtype, y.tolist()) == (mt.float64, [2.0, 4.0])
        y.sum().backward()
        assert (x.grad.dtype, x.grad.tolist()) == (mt.float32, [2.0, 2.0])
