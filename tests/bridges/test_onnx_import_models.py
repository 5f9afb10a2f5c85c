"""Models of several nodes: those of PyTorch, control flow, functions, quantized models; training, graphs, files."""

from __future__ import annotations

import io
import subprocess
import sys
import warnings

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, load_from_string, numpy_helper, parser

import minitensor as mt

ort = pytest.importorskip("onnxruntime")


def onnxruntime(model, *inputs):
    """Returns the results of ONNX Runtime."""
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [info.name for info in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


def exported(module, *inputs, **options):
    """Returns a module of PyTorch as a model."""
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, inputs, file, dynamo=False, opset_version=17, **options)
    return load_from_string(file.getvalue())


def parsed(text):
    """Returns the model of a text."""
    return parser.parse_model('<ir_version: 8, opset_import: ["" : 18]>\n' + text)


def assert_close(found, expected, rtol=1e-5):
    found = found if isinstance(found, (list, tuple)) else [found]
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        scale = max(np.abs(b).max(initial=0.0), 1e-6)
        assert np.abs(a.detach().numpy() - b).max(initial=0.0) / scale < rtol


ARCHITECTURES = ["ResNet-18", "MobileNetV3 small", "ViT", "Swin-T", "ConvNeXt-T", "Whisper encoder"]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_an_architecture_of_pytorch_computes_what_onnxruntime_computes(name):
    pytest.importorskip("torch")
    from torch_ir_models import MODELS

    if name not in MODELS:
        pytest.skip("the package of the architecture is not installed")
    module, inputs = MODELS[name]()
    model = exported(module.eval(), *(inputs.values() if isinstance(inputs, dict) else inputs))
    given = [t.numpy() for t in (inputs.values() if isinstance(inputs, dict) else inputs)]
    expected = onnxruntime(model, *given)
    loaded = mt.onnx.load(model)
    with mt.no_grad():
        assert_close(loaded(*given), expected)
        assert_close(mt.jit(loaded)(*map(mt.Tensor, given)), expected)


def layers():
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.value = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            q = self.query(x).reshape(x.shape[0], x.shape[1], 2, 4).transpose(1, 2)
            v = self.value(x).reshape(x.shape[0], x.shape[1], 2, 4).transpose(1, 2)
            found = nn.functional.scaled_dot_product_attention(q, q, v, is_causal=True)
            return found.transpose(1, 2).flatten(2)

    class Recurrent(nn.Module):
        def __init__(self, cls):
            super().__init__()
            self.layer = cls(4, 5, num_layers=2, bidirectional=True, batch_first=True)

        def forward(self, x):
            return self.layer(x)[0]

    image = torch.randn(2, 3, 9, 9)
    return {
        "perceptron": (nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3)), torch.randn(5, 4)),
        "convolutions": (
            nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.GroupNorm(2, 4), nn.SiLU(), nn.AvgPool2d(2), nn.Flatten()),
            image,
        ),
        "upsampling": (
            nn.Sequential(nn.ConvTranspose2d(3, 4, 2, 2), nn.Upsample(scale_factor=2, mode="bicubic"), nn.MaxPool2d(2)),
            image,
        ),
        "attention": (Attention(), torch.randn(2, 6, 8)),
        "lstm": (Recurrent(nn.LSTM), torch.randn(2, 6, 4)),
        "gru": (Recurrent(nn.GRU), torch.randn(2, 6, 4)),
        "embedding": (nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 2)), torch.randint(0, 9, (3, 5))),
    }


@pytest.mark.parametrize("name", ["perceptron", "convolutions", "upsampling", "attention", "lstm", "gru", "embedding"])
def test_results_and_gradients_of_layers_are_those_of_pytorch(name):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module, x = layers()[name]
    module.eval()
    model = exported(module, x, do_constant_folding=False, input_names=["x"])
    expected = module(x)
    expected.square().sum().backward()
    loaded = mt.onnx.load(model)
    found = loaded(mt.Tensor(x.numpy()))
    assert_close(found, [expected.detach().numpy()])
    (found**2).sum().backward()
    # Matrices of linear layers may be transposed, so gradients are compared as sets of numbers.
    gradients = sorted(float((p.grad**2).sum().item()) for p in loaded.parameters() if p.grad is not None)
    wanted = sorted(float(p.grad.square().sum()) for p in module.parameters())
    if name not in ("lstm", "gru"):
        assert gradients == pytest.approx(wanted, rel=1e-4)
    else:
        # The rows of its gates are in another order, and one tensor has both directions.
        assert sum(gradients) == pytest.approx(sum(wanted), rel=1e-4)


def test_a_batch_of_any_size_runs():
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 3), torch.nn.Flatten(), torch.nn.Linear(12, 2)).eval()
    x = torch.randn(4, 2, 6)
    model = exported(module, x, input_names=["x"], dynamic_axes={"x": {0: "batch"}})
    loaded = mt.onnx.load(model)
    assert loaded.inputs[0].shape == ("batch", 2, 6)
    with mt.no_grad():
        for size in (1, 3, 7):
            y = np.random.default_rng(size).standard_normal((size, 2, 6)).astype("float32")
            assert_close(loaded(y), onnxruntime(model, y))


CLASSIFIER = """
classifier (float["n", 4] x) => (float["n", 3] scores)
<float[4, 8] w1, float[8] b1, float[8, 3] w2, float scale = {0.5}> {
    hidden = MatMul (x, w1)
    shifted = Add (hidden, b1)
    active = Relu (shifted)
    product = MatMul (active, w2)
    scores = Mul (product, scale)
}
"""


def classifier():
    """Returns a small classifier with random weights."""
    model = parsed(CLASSIFIER)
    rng = np.random.default_rng(0)
    del model.graph.initializer[:]
    for name, shape in (("w1", (4, 8)), ("b1", (8,)), ("w2", (8, 3)), ("scale", ())):
        value = np.asarray(rng.standard_normal(shape), dtype="float32")
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    return model


def test_parameters_are_initializers_with_axes_and_buffers_the_others():
    model = mt.onnx.load(classifier())
    assert [name for name, _ in model.named_parameters()] == ["w1", "b1", "w2"]
    assert [name for name, _ in model.named_buffers()] == ["scale"]
    assert list(model.state_dict()) == ["w1", "b1", "w2", "scale"]


def test_running_statistics_and_scales_are_buffers():
    torch = pytest.importorskip("torch")
    module = torch.nn.BatchNorm1d(3).eval()
    for tensor in module.state_dict().values():
        if tensor.ndim:
            tensor.copy_(torch.rand(3))
    mode = torch.onnx.TrainingMode.PRESERVE
    model = mt.onnx.load(exported(module, torch.randn(2, 3), training=mode))
    assert {name for name, _ in model.named_parameters()} == {"weight", "bias"}
    assert {name for name, _ in model.named_buffers()} == {"running_mean", "running_var"}


def test_training_reduces_the_loss_as_steps_by_hand_do():
    model = mt.onnx.load(classifier())
    rng = np.random.default_rng(1)
    x = mt.Tensor(rng.standard_normal((32, 4)).astype("float32"))
    target = mt.Tensor(rng.integers(0, 3, 32))
    weights = {name: t.detach().numpy().astype("float64") for name, t in model.named_parameters()}
    optimizer = mt.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(20):
        loss = mt.ops.cross_entropy(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] * 0.95
    # The same steps in NumPy.
    scale, a, t = model.scale.item(), x.numpy().astype("float64"), target.numpy()
    for _ in range(20):
        hidden = a @ weights["w1"] + weights["b1"]
        scores = np.maximum(hidden, 0) @ weights["w2"] * scale
        p = np.exp(scores - scores.max(1, keepdims=True))
        d = p / p.sum(1, keepdims=True)
        d[np.arange(32), t] -= 1
        d *= scale / 32
        inner = (d @ weights["w2"].T) * (hidden > 0)
        weights["w2"] -= 0.1 * np.maximum(hidden, 0).T @ d
        weights["w1"] -= 0.1 * a.T @ inner
        weights["b1"] -= 0.1 * inner.sum(0)
    for name, tensor in model.named_parameters():
        np.testing.assert_allclose(tensor.detach().numpy(), weights[name], rtol=1e-4, atol=1e-5)


def test_inputs_are_passed_by_position_or_by_name():
    model = mt.onnx.load(
        parsed("f (float[2] a, float[2] b) => (float[2] c, float[2] d) {c = Sub (a, b) d = Add (a, b)}")
    )
    assert model.input_names == ("a", "b")
    assert model.output_names == ("c", "d")
    a, b = mt.Tensor([3.0, 4.0]), mt.Tensor([1.0, 5.0])
    for results in (model(a, b), model(a, b=b), model(b=b, a=a)):
        assert [t.tolist() for t in results] == [[2.0, -1.0], [4.0, 9.0]]


def test_wrong_inputs_are_named():
    model = mt.onnx.load(
        parsed("f (float[n, 2] a, int64[2] b) => (float[n, 2] c) {t = Cast <to = 1> (b) c = Add (a, t)}")
    )
    a, b = mt.zeros(3, 2), mt.zeros(2, dtype="int64")
    for args, kwargs, message in [
        ((a,), {}, r"misses the input b: int64 \(2\)"),
        ((a, b, a), {}, r"has 2 inputs \(a, b\), got 3"),
        ((a,), {"a": a}, "'a' by position and by name"),
        ((a, b), {"z": a}, "has no input 'z'"),
        ((mt.zeros(3), b), {}, r"input a: float32 \(n, 2\): got float32 \(3,\)"),
        ((mt.zeros(3, 3), b), {}, r"got float32 \(3, 3\)"),
        ((a, mt.zeros(2)), {}, r"input b: int64 \(2\): got float32"),
        ((a, 3), {}, "expected a tensor, got int"),
    ]:
        with pytest.raises(mt.onnx.OnnxError, match=message):
            model(*args, **kwargs)


def test_an_input_with_a_default_may_be_passed_by_name():
    model = parsed("f (float[2] x, float[2] w) => (float[2] y) {y = Mul (x, w)}")
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [2], [2.0, 3.0]))
    loaded = mt.onnx.load(model)
    x = mt.Tensor([1.0, 1.0])
    assert loaded(x).tolist() == [2.0, 3.0]
    assert loaded(x, w=mt.Tensor([5.0, 6.0])).tolist() == [5.0, 6.0]


def test_a_saved_model_computes_the_same_without_onnx(tmp_path):
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8, 2))
    model = mt.onnx.load(exported(module.eval(), torch.randn(1, 1, 4, 4)))
    x = mt.Tensor(np.arange(16, dtype="float32").reshape(1, 1, 4, 4))
    mt.save(tmp_path / "model.mt", model, x)
    assert mt.load(tmp_path / "model.mt")(x).tolist() == model(x).tolist()
    code = f"""
import sys
sys.modules["onnx"] = None
import minitensor as mt
model = mt.load({str(tmp_path / "model.mt")!r})
print(model(mt.arange(16, dtype="float32").reshape(1, 1, 4, 4)).tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == str(model(x).tolist()), done.stderr


def test_importing_minitensor_does_not_import_onnx():
    code = "import sys, minitensor; print('onnx' in sys.modules, 'minitensor.onnx.loading' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False False", done.stderr


def test_without_onnx_the_error_says_what_to_install():
    code = """
import sys
sys.modules["onnx"] = None
import minitensor as mt
try:
    mt.onnx.load("model.onnx")
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "mt.onnx.load needs the package onnx; install it with: pip install onnx", done.stderr


COLLATZ = """
collatz (int64 start) => (int64 steps) {
    zero = Constant <value = int64 {0}> ()
    one = Constant <value = int64 {1}> ()
    going = Greater (start, one)
    last, steps = Loop ("", going, start, zero) <body = step (int64 i, bool c, int64 n, int64 count) 
        => (bool more, int64 next, int64 total) {
        two = Constant <value = int64 {2}> ()
        three = Constant <value = int64 {3}> ()
        half = Div (n, two)
        rest = Mod (n, two)
        odd = Equal (rest, one)
        next = If (odd) <
            then_branch = odd_branch () => (int64 a) {tripled = Mul (n, three) a = Add (tripled, one)},
            else_branch = even_branch () => (int64 b) {b = Identity (half)}
        >
        total = Add (count, one)
        more = Greater (next, one)
    }>
}
"""


def test_loops_and_branches_run_as_often_as_the_elements_say():
    model = parsed(COLLATZ)
    loaded = mt.onnx.load(model)
    for start in (1, 6, 7, 27):
        x = np.array(start, dtype="int64")
        assert loaded(x).item() == onnxruntime(model, x)[0]


def test_under_jit_each_run_chooses_a_branch():
    model = mt.onnx.load(
        parsed("""
        f (float[2] x) => (float[2] y) {
            total = ReduceSum <keepdims = 0> (x)
            zero = Constant <value = float {0.0}> ()
            positive = Greater (total, zero)
            y = If (positive) <
                then_branch = a () => (float[2] p) {p = Exp (x)},
                else_branch = b () => (float[2] q) {q = Neg (x)}
            >
        }""")
    )
    jitted = mt.jit(model)
    for x in (mt.Tensor([1.0, 2.0]), mt.Tensor([-1.0, -2.0]), mt.Tensor([3.0, -1.0])):
        assert jitted(x).tolist() == model(x).tolist()
    assert len(jitted.graphs) == 1


def test_under_jit_sizes_that_nodes_compute_from_shapes_are_known():
    model = parsed("""
        f (float[n, m] x) => (float[k, l] y, float[i, j] ones, int64[p, q] at) {
            rows_list = Shape <start = 0, end = 1> (x)
            rows = Squeeze (rows_list)
            columns_list = Shape <start = 1> (x)
            zero = Constant <value = int64 {0}> ()
            one = Constant <value = int64 {1}> ()
            two = Constant <value_ints = [2]> ()
            places = Range (zero, rows, one)
            float_places = Cast <to = 1> (places)
            column_of_places = Unsqueeze (float_places, one)
            shifted = Add (x, column_of_places)
            doubled = Mul (columns_list, two)
            halves = Div (doubled, two)
            minus = Constant <value_ints = [-1]> ()
            flat = Concat <axis = 0> (minus, halves)
            y = Reshape (shifted, flat)
            size = Concat <axis = 0> (rows_list, doubled)
            is_small = Less (size, doubled)
            larger = Max (size, two)
            chosen = Where (is_small, size, larger)
            root = Constant <value_float = 2.0> ()
            float_size = Cast <to = 1> (chosen)
            squares = Pow (float_size, root)
            roots = Sqrt (squares)
            rounded = Round (roots)
            whole = Cast <to = 7> (rounded)
            mask = ConstantOfShape <value = float[1] {1.0}> (whole)
            ones = Identity (mask)
            small = ConstantOfShape <value = int64[1] {1}> (rows_list)
            at = NonZero (small)
        }""")
    loaded = mt.onnx.load(model)
    jitted = mt.jit(loaded)
    for shape in ((2, 3), (4, 5)):
        x = np.random.default_rng(0).standard_normal(shape).astype("float32")
        expected = onnxruntime(model, x)
        assert_close(loaded(mt.Tensor(x)), expected)
        assert_close(jitted(mt.Tensor(x)), expected)


def test_gradients_flow_through_a_scan():
    model = mt.onnx.load(
        parsed("""
        f (float[2] init, float[5, 2] xs) => (float[2] last, float[5, 2] all) {
            last, all = Scan <num_scan_inputs = 1, body = step (float[2] h, float[2] x) => (float[2] n, float[2] o) {
                t = Mul (h, x)
                n = Tanh (t)
                o = Identity (n)
            }> (init, xs)
        }""")
    )
    rng = np.random.default_rng(0)
    h = mt.Tensor(rng.standard_normal(2).astype("float32"), requires_grad=True)
    xs = mt.Tensor(rng.standard_normal((5, 2)).astype("float32"), requires_grad=True)
    _, rows = model(h, xs)
    found = mt.grad(rows.sum(), [h, xs])
    expected = h
    total = None
    for k in range(5):
        expected = (expected * xs[k]).tanh()
        total = expected.sum() if total is None else total + expected.sum()
    for a, b in zip(found, mt.grad(total, [h, xs]), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)


FUNCTIONS = """
<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
f (float[2, 3] x) => (float[2, 3] y) {
    t = local.scaled <factor = 3.0> (x)
    y = local.twice (t)
}
<domain: "local", opset_import: ["" : 18]> scaled <factor> (x) => (y) {
    c = Constant <value_float: float = @factor> ()
    y = Mul (x, c)
}
<domain: "local", opset_import: ["" : 18, "local" : 1]> twice (x) => (y) {
    t = local.scaled <factor = 2.0> (x)
    y = Relu (t)
}
"""


def test_functions_of_a_model_get_their_attributes():
    model = parser.parse_model(FUNCTIONS)
    x = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]], dtype="float32")
    np.testing.assert_array_equal(mt.onnx.load(model)(x).numpy(), np.maximum(6 * x, 0))


def test_a_quantized_model_computes_what_onnxruntime_computes():
    quantization = pytest.importorskip("onnxruntime.quantization")
    model = classifier()
    rng = np.random.default_rng(0)
    batches = [{"x": rng.standard_normal((8, 4)).astype("float32")} for _ in range(4)]

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.rest = iter(batches)

        def get_next(self):
            return next(self.rest, None)

    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        quantization.quantize_static(model, f"{folder}/q.onnx", Reader(), quant_format=quantization.QuantFormat.QDQ)
        loaded = mt.onnx.load(f"{folder}/q.onnx")
        quantized = ModelProto()
        with open(f"{folder}/q.onnx", "rb") as file:
            quantized.ParseFromString(file.read())
    x = batches[0]["x"]
    (expected,) = onnxruntime(quantized, x)
    with mt.no_grad():
        found = loaded(x).numpy()
    step = np.abs(expected).max() / 127
    assert np.abs(found - expected).max() <= step
    assert "QuantizeLinear" in {node.op_type for node in quantized.graph.node}


def test_weights_of_four_bits_are_dequantized_exactly():
    values = np.arange(-8, 8, dtype="int8").reshape(2, 8)
    model = parsed("f (float[1, 2] x) => (float[1, 8] y) {d = DequantizeLinear (w, s) y = MatMul (x, d)}")
    model.opset_import[0].version = 21
    model.ir_version = 10
    weight = helper.make_tensor("w", TensorProto.INT4, [2, 8], values.reshape(-1).tolist())
    model.graph.initializer.extend([weight, helper.make_tensor("s", TensorProto.FLOAT, [], [0.5])])
    loaded = mt.onnx.load(model)
    x = np.array([[1.0, 2.0]], dtype="float32")
    for function in (loaded, mt.jit(loaded)):
        np.testing.assert_array_equal(function(mt.Tensor(x)).numpy(), x @ (values * np.float32(0.5)))
    assert loaded.w.dtype.name == "int8"


def test_names_that_a_module_cannot_have_are_changed():
    names = ["forward", "a", "a.b", "", "x.", "training", "inputs"]
    model = parsed("f (float[1] x) => (float[1] y) {y = Identity (x)}")
    del model.graph.node[:]
    last = "x"
    for k, name in enumerate(names):
        if not name:
            continue
        model.graph.initializer.append(helper.make_tensor(name, TensorProto.FLOAT, [1], [float(k + 1)]))
        model.graph.node.append(helper.make_node("Add", [last, name], [f"t{k}"]))
        last = f"t{k}"
    model.graph.node.append(helper.make_node("Identity", [last], ["y"]))
    loaded = mt.onnx.load(model)
    assert {name for name, _ in loaded.named_parameters()} == {"forward_", "a", "a_b", "x._", "training_", "inputs_"}
    assert loaded(mt.zeros(1)).item() == sum(k + 1 for k, name in enumerate(names) if name)


#: Operators that move elements, with other inputs and attributes, and what NumPy computes.
MOVES = {
    "Transpose": ([], {"perm": [1, 0]}, lambda x: x.T),
    "Reshape": ([[3, -1]], {}, lambda x: x.reshape(3, -1)),
    "Flatten": ([], {"axis": 0}, lambda x: x.reshape(1, -1)),
    "Unsqueeze": ([[0]], {}, lambda x: x[None]),
    "Slice": ([[1], [100], [1], [2]], {}, lambda x: x[:, 1::2]),
    "Gather": ([[2, 0, -1]], {"axis": 1}, lambda x: x[:, [2, 0, -1]]),
    "Tile": ([[2, 1]], {}, lambda x: np.tile(x, (2, 1))),
    "Expand": ([[2, 1, 1]], {}, lambda x: np.broadcast_to(x, (2, *x.shape))),
}


@pytest.mark.parametrize("op", MOVES)
def test_strings_and_narrow_numbers_are_moved_as_numbers_are(op):
    import ml_dtypes

    others, attributes, expected = MOVES[op]
    numbers = np.arange(12).reshape(3, 4) - 6
    for x, kind in [
        (np.array([[f"s{k}" for k in row] for row in numbers], dtype=object), TensorProto.STRING),
        (numbers.astype(ml_dtypes.int4), TensorProto.INT4),
        (numbers.astype(ml_dtypes.float8_e4m3fn), TensorProto.FLOAT8E4M3FN),
    ]:
        names = [f"i{k}" for k in range(len(others))]
        graph = helper.make_graph(
            [helper.make_node(op, ["x", *names], ["y"], **attributes)],
            "moves",
            [helper.make_tensor_value_info("x", kind, [3, 4])],
            [helper.make_tensor_value_info("y", kind, [None] * expected(x).ndim)],
            [numpy_helper.from_array(np.array(v, dtype="int64"), n) for n, v in zip(names, others, strict=True)],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
        found = mt.onnx.load(model)(x)
        found = found if kind == TensorProto.STRING else found.numpy()
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, expected(x))
