"""Exports to ONNX at special values: NaN, infinities, zeros, tails, and rows of them."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from minitensor._definitions import define, is_of_bits
from minitensor._minitensor import _op_names
from minitensor.onnx.exporting import dtypes
from minitensor.onnx.exporting.builder import Builder, Value
from minitensor.onnx.exporting.functions import Functions
from minitensor.onnx.exporting.primitives import PRIMITIVES
from minitensor.onnx.exporting.row_functions import ROW_FUNCTIONS
from onnx import helper
from onnx_runs import expect_same

import minitensor as mt

pytestmark = pytest.mark.usefixtures("exports_quickly")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


SMALL = [0.0, -0.0, 1e-6, 1e-3, 0.1, 0.3, 0.5, 0.9999, 1.0, 1.5, 2.0, 2.5, 3.0, 7.3]
LARGE = [12.0, 20.0, 30.2, 50.0, 100.0, 170.0, 1e5, 1e10, 1e30, math.inf]
VALUES = [*SMALL, *LARGE, *(-x for x in SMALL), *(-x for x in LARGE), math.nan, -4.0, -4.5]

ELEMENTWISE = [
    name
    for name in _op_names()
    if (d := define(name)).has_program
    and d.is_elementwise
    and not d.mutated
    and "float32" in d.dtypes.get("T", [])
    and not any(i.dtype == "bool" for i in d.inputs)
    and not any(a.required for a in d.attrs)
]
#: The relative errors of ops for which runtimes use approximations that are accurate relative to 1.
INACCURATE = {"sigmoid": 1e-6, "gelu": 1e-6, "example::chain": 1e-6}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_functions_of_elements_at_special_values(name, dtype, path):
    count = len(define(name).inputs)
    lists = {1: [VALUES], 2: zip(*itertools.product(VALUES, VALUES), strict=True)}.get(count)
    lists = lists or zip(*itertools.product(VALUES[::4], VALUES[::5], VALUES[::3]), strict=True)
    tensors = [mt.Tensor(list(values), dtype=dtype) for values in lists]
    rtol = 1e-5 if dtype == "float32" else 1e-11
    # lgamma has zeros, at which a sum cancels.
    atol = INACCURATE.get(name, 1e-13 if name == "lgamma" else 1e-37)
    op = mt.ops
    for part in name.split("::"):
        op = getattr(op, part)
    expect_same(path, lambda *given: op(*given), tensors, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize(
    "name", ["floor_divide", "remainder", "bitwise_left_shift", "bitwise_right_shift", "add", "multiply", "maximum"]
)
def test_functions_of_integers_wrap_around_and_do_not_stop_the_process(name, dtype, path):
    info = np.iinfo(dtype)
    numbers = sorted({0, 1, 2, 3, 7, 8, 31, 63, info.min, info.min + 1, info.max, *((-1, -2, -7) if info.min else ())})
    x, y = zip(*itertools.product(numbers, numbers), strict=True)
    pair = [mt.asarray(np.array(values, dtype)) for values in (x, y)]
    expect_same(path, getattr(mt.ops, name), pair)


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8"])
def test_integer_powers(dtype, path):
    x, y = zip(*itertools.product([-3, -2, -1, 0, 1, 2, 3], [-3, -2, -1, 0, 1, 2, 3, 4]), strict=True)
    expect_same(path, mt.ops.power, [mt.Tensor(list(x), dtype=dtype), mt.Tensor(list(y), dtype=dtype)])


ROWS = [
    [1.0, 2.0, 3.0, 2.0],
    [math.nan, 1.0, math.inf, 2.0],
    [math.inf, 1.0, -math.inf, 0.0],
    [-math.inf] * 4,
    [math.inf, math.inf, 1.0, math.inf],
    [-5.0] * 4,
    [0.0, -0.0, 0.0, math.nan],
    [1000.0, 999.0, -1000.0, 0.0],
]
OVER_ROWS = {
    "softmax": mt.ops.softmax,
    "logsumexp": lambda x: mt.ops.logsumexp(x, axis=[1]),
    "max": lambda x: (mt.ops.max(x, [1]), mt.ops.max(x, [0], True), mt.ops.max(x)),
    "min": lambda x: (mt.ops.min(x, [1]), mt.ops.min(x, [0], True), mt.ops.min(x)),
    "argmax": lambda x: (mt.ops.argmax(x, [1]), mt.ops.argmax(x, [0], True), mt.ops.argmax(x)),
    "argmin": lambda x: (mt.ops.argmin(x, [1]), mt.ops.argmin(x, [0], True), mt.ops.argmin(x)),
    "sum": lambda x: mt.ops.sum(x, [1]),
    "mean": lambda x: mt.ops.mean(x, [1]),
    "prod": lambda x: mt.ops.prod(x, [1]),
    "var": lambda x: (mt.ops.var(x, [1]), mt.ops.var(x, [1], 5.0)),
    "std": lambda x: (mt.ops.std(x, [1]), mt.ops.std(x, [1], 5.0)),
    "any": lambda x: (mt.ops.any(x, [1]), mt.ops.all(x, [1]), mt.ops.count_nonzero(x, [1])),
    "cumsum": mt.ops.cumsum,
    "sort": lambda x: (*mt.ops.sort(x), *mt.ops.sort(x, axis=0, descending=True)),
    "topk": lambda x: (*mt.ops.topk(x, 2), *mt.ops.topk(x, 3, axis=0)),
    "argsort": mt.ops.argsort,
    "layer_norm": mt.ops.layer_norm,
    "standardize": lambda x: mt.ops.standardize(x, [1]),
    "entropy": mt.ops.example.entropy,
    "cosine_similarity": lambda x: mt.ops.cosine_similarity(x, x * 2),
    "nonzero": lambda x: (mt.ops.nonzero(x), mt.ops.nonzero(x, 3), mt.ops.nonzero(x, 40, -1)),
    "unique": lambda x: (*mt.ops.unique_all(x), *mt.ops.unique_all(x, 3), *mt.ops.unique_all(x, 40, 0.5)),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", OVER_ROWS)
def test_rows_with_special_values(name, dtype, path):
    expect_same(path, OVER_ROWS[name], [mt.Tensor(ROWS, dtype="float64").astype(dtype)])


def test_slices_are_those_of_python(path):
    bounds = [None, -9, -5, -4, -1, 0, 2, 4, 9]
    chosen = [slice(a, b, step) for a in bounds for b in bounds for step in (1, 2, -1, -3)]
    expect_same(path, lambda x: [mt.ops.slice(x, 1, c.start, c.stop, c.step) for c in chosen], [mt.randn(2, 5)])


def test_empty_rows(path):
    x = mt.zeros(2, 0)
    expect_same(
        path, lambda x: (x.sum(1), x.mean(1), x.prod(1), mt.ops.any(x, [1]), mt.ops.logsumexp(x, axis=[1])), [x]
    )


@pytest.mark.parametrize("order", range(14))
def test_polygamma_is_that_of_pytorch(order):
    x = np.array([0.1, 0.5, 1.0, 2.5, 7.0, 15.0, 30.0, 1e4, np.inf, np.nan, -0.5, -2.3, -7.7])
    found = computed(lambda v: PRIMITIVES["polygamma"](v, order), x)
    if order > 12:
        assert np.isnan(found).all()
        return
    expected = [float(mt_polygamma(order, value)) for value in x]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def mt_polygamma(order, x):
    """PyTorch's for positive numbers; for others by the recurrence of polygamma."""
    if math.isinf(x):
        return math.inf if order == 0 else 0.0
    steps = max(0, math.ceil(-x) + 1) if x < 0 else 0
    start = torch.polygamma(order, torch.tensor(x + steps, dtype=torch.float64)).item()
    return start - sum((-1) ** order * math.factorial(order) * (x + k) ** (-order - 1) for k in range(steps))


def computed(function, *arrays):
    """What onnxruntime computes for a function of numbers."""
    builder = Builder(Functions(21))
    names = [f"x{k}" for k in range(len(arrays))]
    builder.taken.update(names)
    y = function(*(Value(builder, name, "float64") for name in names))
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, None) for name in (*names, y.name)]
    graph = helper.make_graph(builder.nodes, "graph", infos[:-1], infos[-1:])
    functions = builder.functions.protos
    imports = [helper.make_opsetid(d, 21 if d == "" else 1) for d in {"", *(f.domain for f in functions)}]
    model = helper.make_model(graph, functions=functions, opset_imports=imports, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, arrays, strict=True)))[0]


def test_a_tangent_of_zero_contributes_zero():
    found = computed(PRIMITIVES["chain"], np.array([np.inf, np.nan, 2.0]), np.array([0.0, 0.0, 3.0]))
    np.testing.assert_array_equal(found, [0.0, 0.0, 6.0])


def test_every_function_of_programs_has_a_formula():
    source = (Path(__file__).parents[2] / "kernels" / "src" / "program" / "primitive.rs").read_text(encoding="utf-8")
    names = re.findall(r'^        \w+ "(\w+)" \(', source, re.MULTILINE)
    assert len(names) > 60
    names = [name for name in names if not is_of_bits(name)]  # ONNX cannot express these.
    others = {"select", "and", "or", "not", "detach", "powi", "polygamma"}
    assert set(names) | others == PRIMITIVES.keys()


def test_every_function_of_rows_has_a_formula():
    source = (Path(__file__).parents[2] / "kernels" / "src" / "row" / "function.rs").read_text(encoding="utf-8")
    names = re.findall(r'\(RowFunction::\w+(?:\(1\))?, "(\w+)", \d\)', source)
    assert len(names) > 5
    assert set(names) | {"cumsum", "reverse_cumsum", "scan"} == ROW_FUNCTIONS.keys()


def kernels_of_onnxruntime(op, opset):
    """The dtypes in which onnxruntime computes an op on the CPU."""
    version = onnx.defs.get_schema(op, opset, "").since_version
    names = {f"tensor({onnx_name})": name for onnx_name, name in ONNX_NAMES.items()}
    found = set()
    for kernel in onnxruntime.capi.onnxruntime_pybind11_state.get_all_opkernel_def():
        first, last = kernel.version_range
        place = kernel.op_name, kernel.domain, kernel.provider
        if place == (op, "", "CPUExecutionProvider") and first <= version <= last:
            types = kernel.type_constraints
            found |= {names[t] for t in types.get("T", types.get("T1", [])) if t in names}
    return found


ONNX_NAMES = {name: name for name in (*dtypes.INTEGERS, "bool", "float16", "bfloat16")}
ONNX_NAMES |= {"float": "float32", "double": "float64"}


@pytest.mark.parametrize("op", [op for op in dtypes._KERNELS if "." not in op])
def test_the_table_of_kernels_is_that_of_onnxruntime(op):
    assert set(dtypes._KERNELS[op]) == kernels_of_onnxruntime(op, 21)
