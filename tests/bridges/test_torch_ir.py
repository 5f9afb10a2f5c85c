"""Extraction of graphs from PyTorch models, and their runs."""

import subprocess
import sys

import minitensor.torch
import numpy as np
import pytest
import torch
from minitensor.torch_ir import IR, IRError, extract_ir
from torch import nn
from torch._subclasses import FakeTensorMode

import minitensor as mt


def module(function):
    class Model(nn.Module):
        def forward(self, *args, **kwargs):
            return function(*args, **kwargs)

    return Model()


def extracted(function, *inputs, **options):
    return extract_ir(module(function), inputs, **options)


def ops_of(ir):
    return [node.op_type for node in ir.nodes]


def test_weights_have_no_elements():
    ir = extract_ir(nn.Linear(3, 2), (torch.randn(1, 3),))
    assert [str(w) for w in ir.weights] == ["weight: float32 (2, 3)", "bias: float32 (2,)"]
    assert ir.constants == []


def test_attributes_are_those_of_the_schema_with_defaults():
    (node,) = extracted(lambda x: torch.softmax(x, -1), torch.randn(2)).nodes
    assert (node.op_type, node.attrs) == ("aten.softmax.int", {"dim": -1, "dtype": None})
    (node,) = extracted(lambda x: x.to(torch.float16, memory_format=torch.preserve_format), torch.randn(2)).nodes
    assert node.attrs["dtype"] == "float16"
    assert node.attrs["memory_format"] is None


@pytest.mark.parametrize("kind", ["meta", "fake"])
def test_a_model_of_100_gigabytes_needs_no_memory(kind):
    with torch.device("meta") if kind == "meta" else FakeTensorMode():
        model = nn.Sequential(*(nn.Linear(50_000, 50_000, bias=False) for _ in range(10)))
        ir = extract_ir(model, (torch.empty(1, 50_000),))
    assert ir.statistics().weight_bytes == 100_000_000_000
    assert ops_of(ir) == ["aten.linear.default"] * 10


def test_an_ir_of_a_meta_model_runs_with_other_weights():
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU()).eval()
        ir = extract_ir(model, (torch.empty(2, 4),))
    real = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU()).eval()
    assert ir.verify(real, (torch.randn(2, 4),)) < 1e-5
    with pytest.raises(IRError, match="'meta' has no elements"):
        ir.run((torch.randn(2, 4),), model)


def test_sizes_remain_symbols():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 6)

        def forward(self, x):
            y = self.linear(x).reshape(x.shape[0] * 2, 3)
            a, b = y.split([x.shape[0], x.shape[0]])
            return torch.cat([a, b, y]), torch.zeros(x.shape[0] // 2), x.sum() * x.shape[0]

    dims = ({0: torch.export.Dim("batch", min=4, max=32)},)
    ir = extract_ir(Model(), (torch.randn(6, 4),), dynamic_shapes=dims)
    ((name, limits),) = ir.symbols.items()
    assert limits == (4, 32)
    assert ir.outputs[0].shape == (f"4 * {name}", 3)
    model = Model()
    read = IR.from_json(ir.to_json())
    assert read == ir
    for size in (4, 7, 32):
        for jit in (False, True):
            assert read.verify(model, (torch.randn(size, 4),), jit=jit) < 1e-3
    with pytest.raises(IRError, match="is 33; expected 4 to 32"):
        read.run((torch.randn(33, 4),), model)
    with pytest.raises(IRError, match=f"pass {name}="):
        ir.statistics()
    assert ir.statistics(**{name: 10}).flops > 2 * 10 * 4 * 6


def test_sizes_that_depend_on_elements_are_symbols():
    ir = extracted(lambda x: torch.nonzero(x > 0) + 1, torch.randn(8))
    for _ in range(3):
        x = torch.randn(8)
        (found,) = ir.run((x,))
        assert torch.equal(found, torch.nonzero(x > 0) + 1)
        assert torch.equal(ir.compile()((x,))[0], found)


def test_in_place_calls_and_views_become_functional():
    def function(x):
        y = x.clone()
        y[:, 0] = 5
        y[1].mul_(2)
        y.view(-1)[2:4].copy_(torch.tensor([7.0, 8.0]))
        return y.relu_() + y.t().contiguous().t()

    x = torch.randn(3, 4)
    ir = extracted(function, x)
    assert not any(node.op_type.split(".")[1].endswith("_") for node in ir.nodes)
    assert ir.verify(module(function), (x,)) < 1e-6


def test_buffers_that_change_are_updates():
    model = nn.Sequential(nn.BatchNorm1d(3))
    ir = extract_ir(model, (torch.randn(5, 3),))
    assert sorted(ir.updates) == ["0.num_batches_tracked", "0.running_mean", "0.running_var"]
    assert ir.verify(model, (torch.randn(5, 3),)) < 1e-5


@pytest.mark.parametrize("jit", [False, True])
def test_new_values_of_buffers_are_those_of_pytorch(jit):
    """The statistics after several steps, each with the buffers that the step before returned."""
    model = nn.Sequential(nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3), nn.ReLU(), nn.BatchNorm1d(3, momentum=0.3))
    ir = extract_ir(model, (torch.randn(5, 2, 4),), dynamic_shapes=(({0: torch.export.Dim("batch", min=2)}),))
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for batch in (5, 3, 8):
        x = torch.randn(batch, 2, 4)
        before = {name: tensor.clone() for name, tensor in weights.items()}
        run = ir.compile(weights).with_updates if jit else lambda x: ir.run_with_updates(x, weights)
        (y,), updates = run((x,))
        assert torch.allclose(y, model(x), atol=1e-5)
        assert all(torch.equal(tensor, before[name]) for name, tensor in weights.items())
        assert updates.keys() == ir.updates.keys()
        weights.update(updates)
        for name, wanted in model.state_dict().items():
            torch.testing.assert_close(weights[name], wanted, rtol=1e-5, atol=1e-6)
    assert weights["1.num_batches_tracked"].item() == 3


def test_new_values_of_inputs_and_of_counters():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

        def forward(self, x):
            self.steps += 2
            x.mul_(3.0)
            return x + self.steps

    model, x = Counter(), torch.ones(2)
    ir = extract_ir(model, (torch.ones(2),))
    (y,), updates = ir.run_with_updates((x,), model.state_dict())
    assert (y.tolist(), x.tolist(), model.steps.item()) == ([5.0, 5.0], [1.0, 1.0], 0)
    assert {name: t.tolist() for name, t in updates.items()} == {"steps": 2, "x": [3.0, 3.0]}
    assert ir.run((x,), model.state_dict())[0].tolist() == y.tolist()
    (y,), updates = ir.run_with_updates((np.ones(2, "float32"),), {"steps": np.array(4)})
    assert type(y) is type(updates["steps"]) is np.ndarray
    assert (y.tolist(), updates["steps"].item()) == ([9.0, 9.0], 6)


def test_a_buffer_that_changes_is_a_weight_also_if_it_is_not_in_the_state_dict():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("steps", torch.zeros(()), persistent=False)

        def forward(self, x):
            self.steps += 1
            return x * self.steps

    model, x = Counter(), torch.ones(2)
    ir = extract_ir(model, (x,))
    assert [w.name for w in ir.weights] == ["steps"]
    (y,), updates = ir.run_with_updates((x,), model)
    assert (y.tolist(), updates["steps"].item(), model.steps.item()) == ([1.0, 1.0], 1.0, 0.0)
    with pytest.raises(IRError, match="the weight steps: float32 .* is missing; pass it"):
        ir.run((x,), model.state_dict())
    assert ir.verify(model, (x,)) == 0


def test_verify_compares_what_the_model_changes_and_restores_it():
    model = nn.BatchNorm1d(3)
    ir = extract_ir(model, (torch.randn(5, 3),))
    state = {name: t.clone() for name, t in model.state_dict().items()}
    for jit in (False, True):
        assert ir.verify(model, (torch.randn(5, 3),), jit=jit) < 1e-5
    assert all(torch.equal(t, state[name]) for name, t in model.state_dict().items())
    model.momentum = 0.5
    with pytest.raises(IRError, match="the new value of 'running_mean' differs from that of the model"):
        ir.verify(model, (torch.randn(5, 3),))


def test_what_is_not_in_the_state_dict_is_a_constant():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.tensor([2.0, 3.0]), persistent=False)
            self.register_buffer("shift", torch.ones(2))

        def forward(self, x):
            return x * self.scale + self.shift + torch.tensor([0.5, 0.25])

    model = Model()
    ir = IR.from_json(extract_ir(model, (torch.randn(2),)).to_json())
    assert [w.name for w in ir.weights] == ["shift"]
    assert len(ir.constants) == 2
    x = torch.randn(2)
    assert torch.allclose(ir.run((x,), model.state_dict())[0], model(x))


def test_tied_weights_are_read_from_a_state_dict():
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    model[1].weight = model[0].weight
    x = torch.randn(2, 3)
    ir = extract_ir(model, (x,))
    assert torch.allclose(ir.run((x,), model.state_dict())[0], model(x), atol=1e-6)
    assert ir.verify(model, (x,)) < 1e-6


def test_an_input_with_the_name_of_a_weight_is_renamed():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.x = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x + self.x

    ir = extract_ir(Model(), (torch.randn(2),))
    assert [m.name for m in ir.inputs] == ["x_1"]
    assert ir.verify(Model(), (torch.randn(2),)) == 0


def test_arguments_have_names_and_structure():
    model = module(lambda pair, *, scale: pair["a"] * scale + pair["b"][0])
    inputs = {"pair": {"a": torch.randn(2), "b": [torch.randn(2)]}, "scale": torch.randn(2)}
    ir = extract_ir(model, inputs)
    assert len(ir.inputs) == 3
    assert ir.verify(model, inputs) == 0


def test_the_results_are_tensors_of_the_library_of_the_inputs():
    ir = extracted(lambda x: x * 2, torch.randn(3))
    assert isinstance(ir.run((torch.randn(3),))[0], torch.Tensor)
    assert isinstance(ir.run((mt.randn(3),))[0], mt.Tensor)
    assert isinstance(ir.run((np.zeros(3, np.float32),))[0], np.ndarray)


def test_gradients_reach_tensors_of_minitensor():
    ir = extract_ir(nn.Linear(3, 1), (torch.randn(2, 3),))
    weights = {"weight": mt.randn(1, 3).requires_grad_(), "bias": mt.zeros(1).requires_grad_()}
    x = mt.randn(2, 3)
    ir.run((x,), weights)[0].sum().backward()
    assert np.allclose(weights["weight"].grad.numpy(), x.numpy().sum(0))


def test_pytorch_computes_what_has_no_rule():
    ir = extracted(lambda x: torch.linalg.cholesky(x @ x.T + torch.eye(3)).sum(), torch.randn(3, 3))
    coverage = ir.coverage()
    assert [node.op_type for node in coverage.fallback] == ["aten.linalg_cholesky.default"]
    assert coverage.share == (len(ir.nodes) - 1) / len(ir.nodes)
    assert "PyTorch: aten.linalg_cholesky.default" in str(coverage)
    x = torch.randn(3, 3)
    assert ir.verify(module(lambda x: torch.linalg.cholesky(x @ x.T + torch.eye(3)).sum()), (x,)) < 1e-5
    program = ir.compile()
    assert not program.is_jitted
    assert program.fallbacks == [coverage.fallback[0].name]


def test_pytorch_computes_what_minitensor_refuses():
    ir = extracted(lambda x: nn.functional.avg_pool1d(x, 2), torch.arange(8).reshape(1, 1, 8))
    program = ir.compile()
    x = torch.arange(8).reshape(1, 1, 8) * 3
    for _ in range(2):
        assert torch.equal(program((x,))[0], nn.functional.avg_pool1d(x, 2))
    assert program.fallbacks == [ir.nodes[-1].name]
    assert torch.equal(ir.run((x,))[0], nn.functional.avg_pool1d(x, 2))


def test_an_error_of_a_call_names_the_node():
    ir = extracted(lambda x, i: x[i], torch.randn(3), torch.tensor([0]))
    with pytest.raises(IRError, match=r"node 'index' \(aten.index.Tensor\) failed: IndexError"):
        ir.run((torch.randn(3), torch.tensor([5])))


def test_core_aten_is_what_default_decompositions_leave():
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(2, 3, 8)
    whole = extract_ir(model, (x,))
    core = extract_ir(model, (x,), decompositions=torch.export.default_decompositions())
    assert len(core.nodes) > len(whole.nodes)
    assert whole.diff(core)
    for ir in (whole, core):
        assert ir.coverage().share == 1.0
        assert ir.verify(model, (x,)) < 1e-5


def test_a_graph_with_gradients_is_run_by_our_rules():
    """The gradient of a small network, as calls of ATen."""
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.GroupNorm(1, 2), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 1)
    )
    x = torch.randn(2, 1, 6, 6)
    from torch.fx.experimental.proxy_tensor import make_fx

    def gradient(x, *weights):
        named = dict(zip(dict(model.named_parameters()), weights, strict=True))
        return torch.autograd.grad(torch.func.functional_call(model, named, x).sum(), weights)

    weights = [p.detach().requires_grad_() for p in model.parameters()]
    traced = make_fx(gradient)(x, *weights)
    wanted = gradient(x, *weights)
    ir = extract_ir(traced, (x, *(w.detach() for w in weights)))
    for found, expected in zip(ir.run((x, *weights)), wanted, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_ops_of_minitensor_keep_their_names():
    model = module(lambda x: torch.ops.minitensor.swish(x) + minitensor.torch.elu(x, alpha=2.0))
    x = torch.randn(4)
    ir = extract_ir(model, (x,))
    assert ops_of(ir) == ["minitensor.swish", "minitensor.elu", "aten.add.Tensor"]
    assert ir.nodes[1].attrs == {"alpha": 2.0}
    assert ir.verify(model, (x,)) < 1e-6


def test_an_ir_runs_where_pytorch_is_not_installed(tmp_path):
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)).eval()
    x = torch.randn(1, 1, 4, 4)
    (tmp_path / "model.json").write_text(extract_ir(model, (x,)).to_json(), encoding="utf-8")
    np.savez(tmp_path / "weights.npz", **{name: t.numpy() for name, t in model.state_dict().items()})
    np.save(tmp_path / "x.npy", x.numpy())
    code = """
import sys
sys.modules["torch"] = None
import os
import numpy as np
from minitensor.ir import IR
os.chdir(sys.argv[1])
graph = IR.from_json(open("model.json", encoding="utf-8").read())
assert graph.coverage().share == 1.0
np.save("y.npy", graph.compile(dict(np.load("weights.npz")))((np.load("x.npy"),))[0])
try:
    import minitensor.torch_ir
except ImportError as error:
    assert "pip install torch" in str(error)
graph.nodes[0].op_type = "aten.unknown.default"
try:
    graph.run((np.load("x.npy"),), dict(np.load("weights.npz")))
except ValueError as error:
    assert "pip install torch" in str(error), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), model(x).detach().numpy(), atol=1e-6)


def on_elements(x):
    return x + 1 if x.sum() > 0 else x - 1


def with_item(x):
    return x * x.sum().item()


def with_cond(x):
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (on_elements, "cannot export Model.*torch.where"),
        (with_item, "node '.*item|dense.*' .*reads an element"),
        (with_cond, "node 'true_graph_0' is a part of the model.*torch.where"),
        (lambda x: (x, 3), "returns 3, which is not a tensor"),
    ],
)
def test_what_an_ir_cannot_have_is_an_error(function, message):
    with pytest.raises(IRError, match=f"(?s){message}"):
        extracted(function, torch.randn(3))


def test_an_op_that_nobody_has_is_an_error():
    ir = extracted(lambda x: x.relu(), torch.randn(3))
    ir.nodes[0].op_type = "mine.relu"
    with pytest.raises(IRError, match="node 'relu': neither minitensor nor PyTorch has an op 'mine.relu'"):
        ir.run((torch.randn(3),))


def test_an_op_with_effects_is_an_error(tmp_path):
    path = tmp_path / "written"
    ir = extracted(lambda: torch.zeros(4))
    ir.nodes[0].op_type = "aten.from_file.default"
    ir.nodes[0].attrs = {"filename": str(path), "shared": True, "size": 4}
    with pytest.raises(IRError, match="has effects outside of the graph"):
        ir.run(())
    assert not path.exists()


def test_an_attribute_that_the_schema_does_not_have_is_an_error():
    ir = extracted(lambda x: x.relu(), torch.randn(3))
    ir.nodes[0].attrs = {"slope": 1.0}
    with pytest.raises(IRError, match="node 'relu': aten.relu.default has no argument 'slope'"):
        ir.run((torch.randn(3),))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({}, r"(?s)weight weight: float32 \(2, 3\) is missing.*weight bias: float32 \(2,\) is missing"),
        ({"weight": torch.ones(3, 2), "bias": torch.ones(2)}, r"weight weight: float32 \(2, 3\): got float32 \(3, 2\)"),
        ({"weight": torch.ones(2, 3).half(), "bias": torch.ones(2)}, "got float16"),
        ({"weight": 3, "bias": torch.ones(2)}, "expected a tensor, got int"),
    ],
)
def test_weights_that_do_not_match_are_an_error(weights, message):
    ir = extract_ir(nn.Linear(3, 2), (torch.randn(1, 3),))
    with pytest.raises(IRError, match=message):
        ir.run((torch.randn(1, 3),), weights)


def test_a_difference_from_the_model_is_an_error():
    ir = extract_ir(nn.Linear(3, 2), (torch.randn(1, 3),))
    ir.nodes[0].op_type = "aten.linear.default"
    other = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    state = {"weight": other[0].weight, "bias": other[0].bias - 100}

    class Shifted(nn.Module):
        def named_parameters(self, **_):
            return iter(state.items())

        def forward(self, x):
            return other(x)

    with pytest.raises(IRError, match="result 'linear' differs from that of the model by up to"):
        ir.verify(Shifted(), (torch.randn(1, 3),))


def test_a_wrong_kind_of_model_or_inputs_is_an_error():
    with pytest.raises(TypeError, match=r"must be a torch.nn.Module"):
        extract_ir(lambda x: x, (torch.randn(1),))
    with pytest.raises(TypeError, match="inputs must be a tuple"):
        extract_ir(nn.ReLU(), 3)
