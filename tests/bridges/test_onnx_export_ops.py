"""Custom ops in exports to ONNX: as functions, or as nodes of a domain of their own."""

import math
import sys
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx_runs import expect_close, expect_same, run

import minitensor as mt

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from c_plugin import library, loaded  # noqa: E402
from python_plugin import plugin  # noqa: E402
from test_plugin_library_programs import MASKED, SCALED, writing  # noqa: E402

pytestmark = pytest.mark.usefixtures("exports_quickly", "registered")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


FLOATS = ["float16", "float32", "float64"]


def functions(model):
    """The names of the functions of a model."""
    return [(f.domain, f.name) for f in model.functions]


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int64"])
def test_an_element_op_is_a_function(path, dtype):
    @mt.element_op(name="exported::squareplus", where="b >= 0")
    def squareplus(x, b: float = 4.0):
        """A smooth maximum."""
        return (x + (x * x + b).sqrt()) / 2

    x = (mt.randn(3, 4) * 3).astype(dtype)
    model = expect_same(path, lambda x: (squareplus(x), squareplus(x, b=0.1)), [x])
    # One function for both calls: the attribute of a float is an attribute of the function.
    assert functions(model) == [("exported", "squareplus")]
    assert list(model.functions[0].attribute) == ["b"]
    assert model.functions[0].doc_string == "A smooth maximum."


def test_a_number_of_float64_keeps_its_digits(path):
    @mt.element_op(name="exported::shifted")
    def shifted(x, by: float):
        return x - by

    x = mt.Tensor([0.1], dtype="float64")
    expect_same(path, lambda x: shifted(x, by=0.1), [x], atol=0)


def test_static_attributes_and_optional_inputs_choose_functions(path):
    @mt.element_op(name="exported::leaky")
    def leaky(x, shift=None, slope: float = 0.01, power: int = 1, mode: Literal["soft", "hard"] = "hard"):
        gate = x.sigmoid() if mode == "soft" else mt.where(x > 0, 1.0, 0.0)
        y = x**power * (slope + (1 - slope) * gate)
        return y if shift is None else y + shift.erf()

    def model(x, y):
        first = leaky(leaky(x, power=2), slope=0.3, mode="soft", shift=y)
        return first * leaky(x), leaky(x, shift=y[0]), leaky(x, slope=0.5), leaky(x, shift=2.0)

    for dtype in ("float32", "float64"):
        exported = expect_same(path, model, [mt.randn(3, 4).astype(dtype), mt.randn(3, 4).astype(dtype)])
        assert [name for domain, name in functions(exported) if domain == "exported"] == [
            "leaky",
            "leaky_2",
            "leaky_3",
            "leaky_4",
        ]


@pytest.mark.parametrize("dtype", FLOATS)
def test_several_results(path, dtype):
    @mt.element_op(name="exported::polar", outputs=["radius", "angle", "is_far"])
    def polar(x, y):
        radius = (x * x + y * y).sqrt()
        return radius, mt.ops.atan2(y, x), radius > 1.0

    # The inputs broadcast. A result that is not used is left out.
    x, y = mt.randn(3, 1).astype(dtype), mt.randn(4).astype(dtype)
    expect_same(path, polar, [x, y])
    expect_same(path, lambda x, y: polar(x, y)[1], [x, y])


def test_results_that_do_not_depend_on_an_input_have_its_shape(path):
    @mt.element_op(name="exported::partial", outputs=["a", "b", "c"])
    def partial(x, y):
        return x + 1, x * 0 + y, y

    @mt.row_op(name="exported::rows", outputs=["a", "b", "c", "d"])
    def rows(x, y):
        return x.count() + y * 0, x.sum() * 0 + 3.0, y, x.count()

    x, y = mt.randn(2, 1, 3), mt.randn(4, 3)
    expect_same(path, partial, [x, y])
    expect_same(path, rows, [x, y])


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_row_op_is_a_function(path, dtype):
    @mt.row_op(name="exported::rms_norm", where="eps >= 0")
    def rms_norm(x, weight=None, eps: float = 1e-3):
        y = x / ((x * x).mean() + eps).sqrt()
        return y if weight is None else y * weight

    @mt.row_op(name="exported::centered", outputs=["y", "mean"])
    def centered(x):
        return x - x.mean(), x.mean()

    x = mt.randn(2, 3, 5).astype(dtype)
    model = expect_same(path, lambda x: (rms_norm(x), rms_norm(x, x[0, 0], eps=0.5), *centered(x)), [x])
    assert functions(model) == [("exported", "rms_norm"), ("exported", "rms_norm_2"), ("exported", "centered")]


def test_the_axes_of_a_row_op(path):
    @mt.row_op(name="exported::spread", axis=None)
    def spread(x):
        return (x - x.mean()).sum() + x.max() - x.min()

    @mt.row_op(name="exported::ordered", axis=None)
    def ordered(x):
        return x * x.position() + x.cumsum() - x.reverse_cumsum() + x.argmax() / x.count()

    x = mt.randn(2, 3, 4)
    for axis in (None, 0, 1, -1, [0, 2], [1, 2], [0, 1], []):
        expect_same(path, lambda x, a=axis: (spread(x, axis=a), spread(x, axis=a, keepdims=True)), [x])
        expect_same(path, lambda x, a=axis: ordered(x, axis=a), [x])
    expect_same(path, lambda x: (spread(x), ordered(x)), [mt.Tensor(2.0)])


def test_numbers_per_row_and_rows_of_all_batches(path):
    @mt.row_op(name="exported::weighted", shape="(x: [.., n], t: [..], weight: [n]) -> [.., n]")
    def weighted(x, t, weight):
        return (x - t) * weight + x.at(1.0)

    expect_same(path, weighted, [mt.randn(2, 3, 4), mt.randn(2, 3), mt.randn(4)])
    expect_same(path, weighted, [mt.randn(2, 3, 4), mt.randn(3), mt.randn(4)])


def test_rows_of_any_length(path):
    @mt.row_op(name="exported::scaled")
    def scaled(x):
        return x * x.count() - x.position() + x.var()

    dynamic = {"dynamic": {0: "batch", 1: "n"}}
    expect_same(path, scaled, [mt.randn(2, 5)], [mt.randn(4, 7)], [mt.randn(1, 1)], export=dynamic)


def test_special_functions_are_functions_of_the_model(path):
    @mt.element_op(name="exported::special")
    def special(x):
        return x.lgamma() + x.digamma() * x.erfc() + mt.ops.gelu(x)

    model = expect_same(path, lambda x: (special(x), special(x * 2)), [mt.rand(50) * 5 + 0.1])
    assert ("minitensor.math", "lgamma_float64") in functions(model)
    assert len(functions(model)) == len(set(functions(model)))


@pytest.mark.usefixtures("no_plugins_stay")
def test_the_ops_of_a_library_are_functions_in_the_domain_of_the_plugin(path):
    with loaded(library(code=writing(SCALED), op=MASKED)):
        x, m = mt.Tensor([1.0, 2.0, 3.0]), mt.Tensor([True, False, True])
        model = expect_same(path, lambda x, m: mt.ops.probe(x, m, scale=3.0).tanh(), [x, m])
        assert functions(model) == [(mt._minitensor.describe("probe")["plugin"], "probe")]


@pytest.mark.usefixtures("no_plugins_stay")
def test_the_ops_of_a_plugin_in_python(path):
    halved = mt.CustomOpBuilder("halved", 1).forward(lambda x: x / 2)
    opaque = mt.CustomOpBuilder("opaque", 1).forward(lambda x: x * x.sum().item()).backward(lambda ctx, g: g)
    mt.plugins.PluginRegistry().register(plugin("exported_math", [halved.build(), opaque.build()]))
    # A composite op is the calls that it makes.
    model = expect_same(path, lambda x: mt.ops.halved(x) + 1, [mt.randn(3)])
    assert [node.op_type for node in model.graph.node if node.op_type != "Constant"] == ["Div", "Add"]
    with pytest.warns(UserWarning, match=r"'opaque' \(domain 'exported_math'\)"):
        mt.onnx.export(mt.jit(lambda x: mt.ops.opaque(x)), path, mt.randn(3))


def test_an_op_without_a_program_is_a_node_of_its_domain(path):
    @mt.custom_op(name="exported::rounded", backward=lambda ctx, grad: grad)
    def rounded(x, to: int, mode: str = "even", scales: list[float] = [1.0, 2.0]):  # noqa: B006
        return mt.asarray(np.round(x.detach().numpy() * to) / to)

    x = mt.randn(3, 4)
    message = r"kernels of its own for these ops; .*\n  'exported::rounded' \(domain 'exported'\): its function cannot"
    with pytest.warns(UserWarning, match=message):
        mt.onnx.export(mt.jit(lambda x: rounded(x * 2, to=4) + 1), path, x)
    model = onnx.load(path)
    [node] = [node for node in model.graph.node if node.domain == "exported"]
    assert node.op_type == "rounded"
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert attributes == {"to": 4, "mode": b"even", "scales": [1.0, 2.0]}

    class rounded_of_runtime(OpRun):  # noqa: N801
        op_domain = "exported"

        def _run(self, x, to=None, mode=None, scales=None):
            return (np.round(x * to) / to,)

    rounded_of_runtime.__name__ = "rounded"
    found = ReferenceEvaluator(model, new_ops=[rounded_of_runtime]).run(None, {"x": np.asarray(x)})
    expect_close(found, [rounded(x * 2, to=4) + 1])


def test_an_op_with_a_gradient_in_python_is_a_function_of_the_calls_that_it_makes(path):
    scale = mt.Tensor([1.0, 2.0, 3.0])

    @mt.custom_op(name="exported::scaled", backward=lambda ctx, grad: (grad, None))
    def scaled(x, y=None, k: float = 2.0, axis: int = -1):
        """Softmax, scaled."""
        h = mt.ops.softmax(x, axis=axis) * scale.sum()
        h = h.reshape(-1, x.shape[-1]) * x.shape[0]
        return (h if y is None else h + y) * k

    @mt.custom_op(name="exported::joined", backward="none", outputs=["whole", "largest"])
    def joined(*xs):
        return mt.ops.concat(list(xs)), xs[0].max()

    def model(x):
        return scaled(x), scaled(x * 2, x[0], k=3.0, axis=0), scaled(x + 1), *joined(x, x, x + 1)

    exported = expect_same(path, model, [mt.randn(4, 3)])
    assert functions(exported) == [("exported", "scaled"), ("exported", "scaled_2"), ("exported", "joined")]
    assert [list(f.input) for f in exported.functions] == [["x"], ["x", "y"], ["xs_0", "xs_1", "xs_2"]]
    dynamic = {"dynamic": {0: "n"}}
    expect_same(path, model, [mt.randn(4, 3)], [mt.randn(7, 3)], export=dynamic)


@pytest.mark.parametrize("backward", [None, lambda ctx, grad: grad])
def test_half_results_of_an_op_in_python_are_rounded_as_in_minitensor(path, backward):
    @mt.custom_op(name="exported::shifted", backward=backward)
    def shifted(x):
        return (x * x + 1000.0) - 1000.0

    expect_same(path, lambda x: shifted(x) * 2, [mt.randn(50).astype("float16")], atol=1e-4)


def test_the_function_of_an_op_may_be_any_callable(path):
    class Halved:
        __slots__ = ()
        __name__ = "halved"

        def __call__(self, x):
            return x / 2

    halved = mt.CustomOpBuilder("exported::halved", 1).forward(Halved()).backward(lambda ctx, g: g).register()
    with pytest.warns(UserWarning, match="'exported::halved' .domain 'exported'.: it has no program"):
        mt.onnx.export(mt.jit(lambda x: halved(x)), path, mt.ones(3))


def test_functions_in_float64_are_computed_in_float64(path):
    @mt.element_op(name="exported::precise")
    def precise(x):
        return x.tan() + x.atan() + x.asinh() + x.erf() + x.expm1() + x.log1p()

    x = mt.Tensor([0.1, 1e-9, 0.7, 2.5], dtype="float64")
    expect_same(path, precise, [x], rtol=1e-14)
    assert run(path, [x])[0].dtype == np.float64
    assert math.isclose(
        run(path, [x])[0][0],
        math.tan(0.1) + math.atan(0.1) + math.asinh(0.1) + math.erf(0.1) + math.expm1(0.1) + math.log1p(0.1),
        rel_tol=1e-14,
    )
