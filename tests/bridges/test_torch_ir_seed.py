"""The snippets of the extension guide of IR extraction, with `minitensor.torch_ir` as the package."""

import sys
import types
from typing import Any

import pytest
import torch
from minitensor.torch_ir import IRError, OpNode, export_model, extract_ir
from minitensor.torch_ir.analyzer import NodeInfo
from minitensor.torch_ir.ops import register_executor, register_op, registry
from minitensor.torch_ir.ops.registry import get_conversion_fn, get_execution_fn

from minitensor import torch_ir


@pytest.fixture(autouse=True)
def _registrations_end():
    """Removes what a test registers."""
    executors, conversions = set(registry.list_executors()), set(registry.list_ops())
    yield
    for name in set(registry.list_executors()) - executors:
        registry.unregister_executor(name)
    for name in set(registry.list_ops()) - conversions:
        registry.unregister_op(name)


@pytest.fixture(scope="module")
def gate():
    """An op that is not of ATen: sigmoid(gate) * value."""
    library = torch.library.Library("custom", "FRAGMENT")
    library.define("fused_gate(Tensor gate, Tensor value) -> Tensor")
    library.define("top(Tensor x, int k=1, int dim=-1) -> (Tensor, Tensor)")
    library.define("scaled(Tensor x, float param=1.0) -> Tensor")
    library.impl("fused_gate", lambda gate, value: torch.sigmoid(gate) * value, "CPU")
    library.impl("top", lambda x, k=1, dim=-1: x.topk(k, dim=dim), "CPU")
    library.impl("scaled", lambda x, param=1.0: x * param, "CPU")
    torch.library.register_fake("custom::fused_gate", lambda gate, value: torch.empty_like(value), lib=library)
    torch.library.register_fake("custom::top", lambda x, k=1, dim=-1: x.topk(k, dim=dim), lib=library)
    torch.library.register_fake("custom::scaled", lambda x, param=1.0: torch.empty_like(x), lib=library)
    yield torch.ops.custom
    library._destroy()


def module(function):
    """A model of a function."""

    class Model(torch.nn.Module):
        def forward(self, *args):
            return function(*args)

    return Model()


def some_operation(x, param):
    return x * param


def test_an_executor_computes_an_op_that_is_not_of_aten(gate):
    @register_executor("custom.scaled")
    def execute_my_custom_op(inputs: list[torch.Tensor], attrs: dict[str, Any]) -> list[torch.Tensor]:
        """Execute my_custom_op."""
        x = inputs[0]
        param = attrs.get("param", 1.0)
        result = some_operation(x, param)
        return [result + 1]

    ir = extract_ir(module(lambda x: gate.scaled(x, 3.0)), (torch.ones(2),))
    assert [node.op_type for node in ir.nodes] == ["custom.scaled.default"]
    assert ir.nodes[0].attrs == {"param": 3.0}
    assert ir.run((torch.ones(2),))[0].tolist() == [4.0, 4.0]
    assert [node.name for node in ir.coverage().registered] == ["scaled"]


def test_an_op_with_two_outputs_returns_two_tensors(gate):
    @register_executor("custom.top")
    def execute_my_op(inputs: list[torch.Tensor], attrs: dict[str, Any]) -> list[torch.Tensor]:
        x = inputs[0]
        values, indices = x.topk(attrs.get("k", 1), dim=attrs.get("dim", -1))
        return [values, indices]

    x = torch.randn(3, 5)
    ir = extract_ir(module(lambda x: gate.top(x, 2)), (x,))
    values, indices = ir.run((x,))
    assert torch.equal(values, x.topk(2).values)
    assert torch.equal(indices, x.topk(2).indices)


def test_a_conversion_changes_the_node(gate):
    @register_op("custom.scaled")
    def convert_my_custom_op(node_info: NodeInfo) -> OpNode:
        """Custom conversion with extra processing."""
        return OpNode(
            name=node_info.name,
            op_type="my_custom_op",
            inputs=node_info.input_metas,
            outputs=node_info.output_metas,
            attrs={**node_info.attrs, "extra_info": "custom_value"},
        )

    ir = extract_ir(module(lambda x: gate.scaled(x, 2.0)), (torch.ones(2),))
    assert ir.nodes[0].op_type == "my_custom_op"
    assert ir.nodes[0].attrs == {"param": 2.0, "extra_info": "custom_value"}


def test_a_node_info_has_the_fields_of_the_guide(gate):
    seen = []

    @register_op("custom.scaled")
    def convert(node_info: NodeInfo) -> OpNode:
        seen.append(node_info)
        return OpNode(node_info.name, "custom.scaled", node_info.input_metas, node_info.output_metas, node_info.attrs)

    extract_ir(module(lambda x: gate.scaled(x, 2.0)), (torch.ones(2, 3),))
    (info,) = seen
    assert (info.name, info.op, info.target) == ("scaled", "call_function", torch.ops.custom.scaled.default)
    assert info.args[1] == 2.0
    assert info.kwargs == {}
    assert info.input_metas == [torch_ir.TensorMeta("args_0", (2, 3), "float32")]
    assert info.output_metas == [torch_ir.TensorMeta("scaled", (2, 3), "float32")]
    assert info.attrs == {"param": 2.0}


def test_the_complete_example_runs_from_a_module(gate, tmp_path, monkeypatch):
    (tmp_path / "my_ops").mkdir()
    (tmp_path / "my_ops" / "__init__.py").write_text("from . import custom_gate\n")
    (tmp_path / "my_ops" / "custom_gate.py").write_text(
        """
import torch
from typing import List, Dict, Any

from minitensor.torch_ir.ops import register_op, register_executor
from minitensor.torch_ir import OpNode
from minitensor.torch_ir.analyzer import NodeInfo


@register_op("custom.fused_gate")
def convert_fused_gate(node_info: NodeInfo) -> OpNode:
    return OpNode(
        name=node_info.name,
        op_type="custom.fused_gate",
        inputs=node_info.input_metas,
        outputs=node_info.output_metas,
        attrs=node_info.attrs,
    )


@register_executor("custom.fused_gate")
def execute_fused_gate(
    inputs: List[torch.Tensor],
    attrs: Dict[str, Any]
) -> List[torch.Tensor]:
    gate = inputs[0]
    value = inputs[1]
    return [torch.sigmoid(gate) * value]
"""
    )
    monkeypatch.syspath_prepend(tmp_path)
    import my_ops  # registers the op

    assert isinstance(my_ops, types.ModuleType)
    x, y = torch.randn(3), torch.randn(3)
    model = module(lambda x, y: gate.fused_gate(x, y) + 1)
    ir = extract_ir(model, (x, y))
    assert [node.op_type for node in ir.nodes] == ["custom.fused_gate", "aten.add.Tensor"]
    assert ir.verify(model, (x, y)) < 1e-6
    del sys.modules["my_ops"], sys.modules["my_ops.custom_gate"]


def test_the_debugging_snippets_print_graph_registration_and_schema(capsys):
    model, inputs = torch.nn.Conv2d(3, 4, 3), (torch.randn(1, 3, 8, 8),)

    exported = export_model(model, inputs, strict=False)
    print(exported.graph_module.graph)
    for node in exported.graph_module.graph.nodes:
        if node.op == "call_function":
            print(f"Node: {node.name}")
            print(f"  Target: {node.target}")
            print(f"  Args: {node.args}")
    assert "Target: aten.conv2d.default" in capsys.readouterr().out

    op_type = "my_custom_op"
    print(f"Conversion: {get_conversion_fn(op_type)}")
    print(f"Execution: {get_execution_fn(op_type)}")
    assert capsys.readouterr().out == "Conversion: None\nExecution: None\n"

    fn = torch.ops.aten.conv2d.default
    for arg in fn._schema.arguments:
        print(f"  {arg.name}: {arg.type} (kwarg_only={arg.kwarg_only})")
    assert "stride: List[int] (kwarg_only=False)" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["aten.conv2d.default", "aten.linear.default", "aten.add.Tensor", "aten.softmax.int"])
def test_the_names_of_the_guide_are_names_of_ops(name):
    register_executor(name)(lambda inputs, attrs: inputs)
    assert get_execution_fn(name) is not None


def test_an_executor_for_an_aten_op_takes_precedence():
    register_executor("aten.relu.default")(lambda inputs, attrs: [inputs[0] * 0 + 7])
    ir = extract_ir(torch.nn.ReLU(), (torch.ones(2),))
    assert ir.run((torch.ones(2),))[0].tolist() == [7.0, 7.0]
    assert ir.compile()((torch.ones(2),))[0].tolist() == [7.0, 7.0]


def test_a_name_is_taken_once_unless_override_says_so():
    first, second = (lambda inputs, attrs: inputs), (lambda inputs, attrs: inputs)
    register_executor("custom.a")(first)
    with pytest.raises(ValueError, match="already has a registered executor.*override=True"):
        register_executor("custom.a")(second)
    assert get_execution_fn("custom.a") is first
    register_executor("custom.a", override=True)(second)
    assert get_execution_fn("custom.a") is second
    registry.unregister_executor("custom.a")
    assert get_execution_fn("custom.a") is None
    with pytest.raises(KeyError, match="no registered executor"):
        registry.unregister_executor("custom.a")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "must be a name"),
        ("a b", "must be a name"),
        (3, "must be a name"),
        ("aten.add.Tensr", "did you mean 'aten.add.Tensor'"),
        ("aten.ad.Tensor", "PyTorch has no op"),
    ],
)
@pytest.mark.parametrize("register", [register_executor, register_op])
def test_names_are_checked(register, name, message):
    with pytest.raises(ValueError, match=message):
        register(name)


def test_functions_are_checked():
    with pytest.raises(TypeError, match=r"must take \(inputs, attrs\)"):
        register_executor("custom.a")(lambda inputs: inputs)
    with pytest.raises(TypeError, match=r"must take \(node_info\)"):
        register_op("custom.a")(lambda: None)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (torch.ones(2), "return a list"),
        ([], "has 0 results"),
        ([torch.ones(3)], r"the result is float32 \(3,\)"),
        ([torch.ones(2, dtype=torch.int64)], "the result is int64"),
        ([None], "a result is a NoneType"),
    ],
)
def test_an_executor_that_contradicts_the_ir_is_an_error(result, message):
    register_executor("aten.relu.default")(lambda inputs, attrs: result)
    ir = extract_ir(torch.nn.ReLU(), (torch.ones(2),))
    with pytest.raises(IRError, match=rf"node 'relu' \(aten.relu.default\).*{message}"):
        ir.run((torch.ones(2),))


@pytest.mark.parametrize(("made", "message"), [(None, "returned a NoneType"), ("outputs", "changed the outputs")])
def test_a_conversion_that_contradicts_the_graph_is_an_error(made, message):
    register_op("aten.relu.default")(lambda info: made and OpNode(info.name, "a", info.input_metas, [], {}))
    with pytest.raises(IRError, match=message):
        extract_ir(torch.nn.ReLU(), (torch.ones(2),))
