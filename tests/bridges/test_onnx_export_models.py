"""Models exported to ONNX: layers, sizes that differ, changes in place, and all that `mt.onnx.export` takes."""

import os
import random
import re

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from minitensor.torch_ir import extract_ir
from onnx_runs import expect_close, expect_same, run

import minitensor as mt
from minitensor import ir, nn

pytestmark = pytest.mark.usefixtures("exports_quickly")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


def names(values):
    return [v.name for v in values]


class Perceptron(nn.Module):
    """Two layers, with dropout between them."""

    def __init__(self):
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 3)

    def forward(self, x):
        h = mt.ops.dropout(self.first(x).tanh(), 0.5, training=self.training)
        return self.second(h)


class Convolutional(nn.Module):
    """Convolutions, normalizations and pools."""

    def __init__(self):
        self.kernel = mt.randn(8, 3, 3, 3, requires_grad=True)
        self.depthwise = mt.randn(8, 1, 3, 3, requires_grad=True)
        self.up = mt.randn(8, 4, 2, 2, requires_grad=True)
        self.bias = mt.randn(8, requires_grad=True)
        self.register_buffer("mean", mt.randn(8))
        self.register_buffer("var", mt.rand(8) + 0.5)
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        h = mt.ops.conv2d(x, self.kernel, self.bias, padding=[1], stride=[2])
        h = mt.ops.batch_norm(h, self.mean, self.var, bias=self.bias).relu()
        h = mt.ops.conv2d(h, self.depthwise, padding=[2], dilation=[2], groups=8)
        h = mt.ops.group_norm(h, self.bias, groups=4)
        h = mt.ops.max_pool2d(h, [2], padding=[1], ceil_mode=True)
        h = mt.ops.instance_norm(mt.ops.conv_transpose2d(h, self.up, stride=[2]))
        h = mt.ops.avg_pool2d(h, [3], stride=[2], ceil_mode=True, count_include_pad=False)
        h = mt.ops.adaptive_avg_pool2d(h, [1])
        return self.head(h.flatten(1))


class Block(nn.Module):
    """A block of a transformer."""

    def __init__(self, width=16, heads=4):
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.gain = mt.ones(width, requires_grad=True)
        self.embedding = mt.randn(20, width, requires_grad=True)

    def forward(self, tokens, mask):
        x = mt.ops.embedding(self.embedding, tokens)
        batch, n, width = x.shape

        def split(t):
            return t.reshape(batch, n, self.heads, width // self.heads).permute_dims([0, 2, 1, 3])

        y = mt.ops.rms_norm(x, self.gain)
        q, k, v = split(self.q(y)), split(self.k(y)), split(self.v(y))
        scores = mt.where(mask, q @ k.transpose(-2, -1) / 2.0, -1e9)
        found = mt.ops.softmax(scores) @ v
        x = x + self.out(found.permute_dims([0, 2, 1, 3]).reshape(batch, n, width))
        return x + self.down(mt.ops.gelu(self.up(mt.ops.layer_norm(x))))


def tokens(batch, n):
    return mt.randint(0, 20, (batch, n)), mt.ops.tril(mt.ones(n, n)) > 0


@pytest.mark.parametrize("opset", [None, 20, 23, 28])
def test_models(path, opset):
    export = {"opset": opset}
    expect_same(path, Perceptron(), [mt.randn(2, 4)], export=export)
    expect_same(path, Convolutional(), [mt.randn(2, 3, 9, 8)], export=export)
    expect_same(path, Block(), tokens(2, 5), export=export)


def test_sizes_that_differ(path):
    batch = {"dynamic": {0: "batch"}}
    expect_same(path, Perceptron(), [mt.randn(2, 4)], [mt.randn(7, 4)], [mt.randn(1, 4)], export=batch)
    expect_same(path, Convolutional(), [mt.randn(2, 3, 9, 8)], [mt.randn(5, 3, 9, 8)], export=batch)
    both = {"dynamic": [{0: "batch", 1: "n"}, {0: "n", 1: "n"}]}
    model = expect_same(path, Block(), tokens(2, 5), tokens(3, 7), tokens(1, 1), export=both)
    [size, length] = model.graph.input[0].type.tensor_type.shape.dim
    assert (size.dim_param, length.dim_param) == ("batch", "n")


def test_functions_of_sizes(path):
    def function(x):
        n, m = x.shape
        first = mt.ops.concat([x, x[: n - 1] * 2.0], axis=0)
        whole = x.reshape(n * m).reshape(m, n).flip() + mt.ops.roll(x, 1).T / n
        rows = x.unsqueeze(1).expand(n, 3, m).reshape(3 * n, m)
        return first, whole, rows, mt.ops.pad(x, [1, 2]), x[1:, ::2], mt.ops.zeros_like(x), x.mean() * n

    dynamic = {"dynamic": {0: "n"}}
    expect_same(path, function, [mt.randn(3, 11)], [mt.randn(6, 11)], [mt.randn(2, 11)], export=dynamic)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_dtypes(path, dtype):
    model = Perceptron()
    for part in (model.first, model.second):
        part.weight, part.bias = (t.detach().astype(dtype).requires_grad_() for t in (part.weight, part.bias))
    expect_same(path, model, [mt.randn(5, 4).astype(dtype)])


def test_a_model_is_always_exported_to_the_same_bytes(path):
    model = Convolutional()
    files = set()
    for _ in range(2):
        mt.onnx.export(model, path, mt.zeros(2, 3, 9, 8), dynamic={0: "batch"})
        files.add(path.read_bytes())
    assert len(files) == 1


def test_names_are_those_of_parameters_and_results(path):
    class Model(nn.Module):
        def __init__(self):
            self.weight = mt.randn(3, requires_grad=True)

        def forward(self, x, pair, weight, *, shift=None):
            return {"sum": x + pair[0], "parts": (pair[1] * weight, self.weight), "x": x}

    model = Model()
    example = (mt.ones(3), (mt.ones(3), mt.zeros(3)), mt.full((3,), 2.0))
    mt.onnx.export(model, path, example)
    graph = onnx.load(path).graph
    assert names(graph.input) == ["x", "pair_0", "pair_1", "weight_2"]
    assert names(graph.initializer) == ["weight"]
    assert names(graph.output) == ["sum", "parts_0", "parts_1", "x_2"]
    expect_close(
        run(path, [example[0], *example[1], example[2]]), [mt.full((3,), 2.0), mt.zeros(3), model.weight, example[0]]
    )
    mt.onnx.export(model, path, example, input_names=["a", "b", "c", "d"], output_names=["p", "q", "r", "s"])
    graph = onnx.load(path).graph
    assert (names(graph.input), names(graph.output)) == (["a", "b", "c", "d"], ["p", "q", "r", "s"])


def test_a_result_may_be_an_input_a_weight_or_occur_twice(path):
    class Model(nn.Module):
        def __init__(self):
            self.weight = mt.randn(3, requires_grad=True)

        def forward(self, x):
            y = x * 2
            return x, y, y, self.weight, y.detach()

    expect_same(path, Model(), [mt.ones(3)])


@pytest.mark.filterwarnings("ignore:mt.onnx.export. the model changes calls in place")
def test_the_mode_and_the_buffers_of_a_module_are_restored(path):
    class Model(nn.Module):
        def __init__(self):
            self.inner = Perceptron()
            self.register_buffer("calls", mt.zeros((), dtype="int64"))

        def forward(self, x):
            self.calls += 1
            return self.inner(x)

    model = Model().train()
    model.inner.first.eval()
    mt.onnx.export(model, path, mt.ones(2, 4))
    assert model.training and model.inner.training and not model.inner.first.training
    assert model.calls.item() == 0
    expect_close(run(path, [mt.ones(2, 4)]), [model.eval()(mt.ones(2, 4))])
    with pytest.raises(ValueError, match="draws random numbers.*in evaluation mode"):
        mt.onnx.export(model, path, mt.ones(2, 4), training=True)


def test_changes_in_place(path):
    def function(x):
        x = x.clone()
        x[0] = 2.0
        x[:, 1:3] *= 3
        transposed, flat, row = x.T, x.reshape(-1), x[1]
        transposed[1] += 1
        flat[3] = 9.0
        row[::2] -= row[1] * 2
        part, reversed, inner = x[1:3].unsqueeze(0), x.flip(), mt.ops.crop(x, [1, 0])
        wide, moved = row.expand(2, 6), mt.ops.moveaxis(x, 0, 1)
        x += 1
        moved[2] -= 0.5
        before = part * 2
        part.squeeze(0)[1, ::-1] *= mt.arange(6)
        mt.ops.relu_(x[2:])
        return x, transposed, flat, row, part, before, reversed, inner, wide, moved

    expect_same(path, function, [mt.randn(4, 6)])
    dynamic = {"dynamic": {0: "n"}}
    expect_same(path, function, [mt.randn(4, 6)], [mt.randn(7, 6)], export=dynamic)


def with_random_changes(x, seed):
    """Views of a tensor, views of views, and changes of them in place."""
    rng = random.Random(seed)
    known = [x * 1.0]
    for _ in range(12):
        t = rng.choice(known)
        match rng.randrange(8):
            case 0 if t.ndim > 1:
                known.append(t.permute_dims(rng.sample(range(t.ndim), t.ndim)))
            case 1 if t.ndim:
                axis = rng.randrange(t.ndim)
                step = rng.choice([1, 2, -1])
                known.append(mt.ops.slice(t, axis, rng.randrange(t.shape[axis]) if step > 0 else None, None, step))
            case 2:
                known.append(t.unsqueeze(rng.randrange(t.ndim + 1)))
            case 3:
                known.append(t.reshape(-1))
            case 4:
                known.append(rng.choice([t.contiguous, t.detach])())
            case 5:
                t += 1.5
            case 6:
                t *= t.detach().mean()
            case 7:
                t.copy_(mt.Tensor(float(rng.randrange(5))))
    return [t * 1.0 for t in known]


def test_random_changes_in_place_are_exported_or_rejected(path):
    exported = 0
    for seed in range(150):
        try:
            expect_same(path, lambda x, seed=seed: with_random_changes(x, seed), [mt.randn(2, 3, 4)])
            exported += 1
        except mt.onnx.ExportError as error:
            assert "view or a copy" in str(error)
        except RuntimeError as error:
            # minitensor does not record such a change.
            assert "changed in place" in str(error)
    assert exported > 50


def test_a_change_of_an_argument_is_not_kept_and_warns(path):
    def function(x):
        x += 1
        return x * 2

    with pytest.warns(UserWarning, match="changes x in place.*does not keep the change"):
        mt.onnx.export(mt.jit(function), path, mt.ones(3, dtype="int64"))
    expect_close(run(path, [mt.ones(3, dtype="int64")]), [mt.full((3,), 4, dtype="int64")])


def test_a_step_of_training(path):
    first, bias, second = (mt.randn(*shape, requires_grad=True) for shape in ((3, 8), (8,), (8, 2)))
    target = mt.Tensor([0, 1, 1, 0], dtype="int64")

    def step(x):
        h = mt.ops.layer_norm(mt.ops.gelu(x @ first + bias))
        loss = mt.ops.cross_entropy(mt.ops.swish(h) @ second, target)
        gradients = mt.grad([loss], [first, bias, second])
        return loss, [p.detach() - 0.1 * g for p, g in zip((first, bias, second), gradients, strict=True)]

    expect_same(path, step, [mt.randn(4, 3)])


def test_jitted_functions_and_their_graphs(path):
    weight = mt.randn(3, 2, requires_grad=True)
    function = mt.jit(lambda a, b=2.0: a @ weight * b)
    x = mt.randn(4, 3)
    expected = function(x, 3.0)
    mt.onnx.export(function, path)
    expect_close(run(path, [x]), [expected])
    assert names(onnx.load(path).graph.initializer) == ["weight"]
    mt.onnx.export(function.graphs[0], path)
    expect_close(run(path, [x]), [expected])


def test_loaded_models(path, tmp_path):
    model = Perceptron()
    mt.save(tmp_path / "model.mt", model, mt.zeros(5, 4), dynamic={0: "batch"})
    loaded = mt.load(tmp_path / "model.mt")
    x = mt.randn(7, 4)
    for example in (None, mt.zeros(7, 4)):
        mt.onnx.export(loaded, path, example)
        expect_close(run(path, [x]), [model.eval()(x)])
        assert names(onnx.load(path).graph.initializer) == [
            "first.weight",
            "first.bias",
            "second.weight",
            "second.bias",
        ]


def test_graphs_of_ops(path):
    x, w, y = (ir.TensorMeta(name, ("n", 3), "float32") for name in ("x", "w", "y"))
    w = ir.TensorMeta("w", (3,), "float32")
    k = ir.Constant(ir.TensorMeta("k", (3,), "float32"), np.array([1, 2, 3], "float32").tobytes())
    h = ir.TensorMeta("h", ("n", 3), "float32")
    nodes = [ir.OpNode("h", "minitensor.multiply", [x, w], [h]), ir.OpNode("y", "minitensor.add", [h, k.meta], [y])]
    graph = ir.IR("graph", [x], [w], nodes, [y], constants=[k], symbols={"n": (1, None)})
    mt.onnx.export(graph, path, weights={"w": mt.full((3,), 2.0)})
    expect_close(run(path, [mt.ones(4, 3)]), [mt.Tensor([[3.0, 4.0, 5.0]] * 4)])
    with pytest.raises(ValueError, match="weights= lacks the weight w: float32"):
        mt.onnx.export(graph, path)


class OfTorch(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        h = torch.nn.functional.max_pool2d(torch.relu(self.norm(self.convolution(x))), 2)
        h = h.flatten(2).transpose(1, 2)
        h, _ = self.attention(h, h, h)
        return self.head(h.mean(1)).log_softmax(-1)


@pytest.mark.parametrize("sizes", [None, {"x": {0: torch.export.Dim("batch")}}])
def test_graphs_of_aten(path, sizes):
    model = OfTorch().eval()
    graph = extract_ir(model, (torch.randn(2, 3, 8, 8),), dynamic_shapes=sizes)
    mt.onnx.export(graph, path, weights=model)
    for n in (2,) if sizes is None else (2, 5):
        x = torch.randn(n, 3, 8, 8)
        [found] = run(path, [mt.asarray(x.numpy())])
        np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert "head.weight" in names(onnx.load(path).graph.initializer)


def test_a_graph_of_aten_without_rules_lists_the_calls(path):
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.inv(x @ x.T) + torch.special.i0(x)

    graph = extract_ir(Model(), (torch.eye(3),))
    with pytest.raises(ValueError, match="(?s)has no rules for some calls.*torch.onnx.export.*special_i0"):
        mt.onnx.export(graph, path)


def test_external_data(path):
    for _ in range(2):
        # The weights of the model before are removed.
        model = Perceptron()
        mt.onnx.export(model, path, mt.ones(2, 4), external_data=True)
        [first, second] = sorted(p.name for p in path.parent.iterdir())
        assert first == "model.onnx" and re.fullmatch(r"model\.onnx\.\w{16}\.data", second)
        onnx.checker.check_model(str(path), full_check=True)
        session = onnxruntime.InferenceSession(path)
        expect_close(session.run(None, {"x": np.ones((2, 4), "float32")}), [model.eval()(mt.ones(2, 4))])


def test_a_failure_keeps_the_weights_of_the_old_file(path, monkeypatch):
    model = Perceptron().eval()
    mt.onnx.export(model, path, mt.ones(2, 4), external_data=True)
    files = sorted(path.parent.iterdir())
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: replace(a, b) if str(b).endswith(".data") else os.stat(""))
    with pytest.raises(OSError):
        mt.onnx.export(Perceptron(), path, mt.ones(2, 4), external_data=True)
    assert sorted(path.parent.iterdir()) == files
    session = onnxruntime.InferenceSession(path)
    expect_close(session.run(None, {"x": np.ones((2, 4), "float32")}), [model(mt.ones(2, 4))])
