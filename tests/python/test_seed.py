"""Every Python snippet of the custom-operations document, unchanged."""

import minitensor as mt


def test_registration():
    mt.register_example_custom_ops()
    ops = mt.list_custom_ops_py()
    assert {"swish", "gelu", "power", "layer_norm"} <= set(ops)
    assert mt.is_custom_op_registered_py("swish") is True
    assert mt.is_custom_op_registered_py("nonsense") is False
    mt.register_example_custom_ops()
    assert mt.list_custom_ops_py() == ops


def test_execution():
    x = mt.Tensor([[1.0, 2.0, -1.0]], requires_grad=True)
    res_core = mt.execute_custom_op_py("swish", [x._tensor])
    result = mt.Tensor.__new__(mt.Tensor)
    result._tensor = res_core
    assert str(result).startswith("tensor([[")
    result.sum().backward()
    assert x.grad.shape == (1, 3)


def test_advanced_usage():
    base = mt.Tensor([[2.0, 3.0], [4.0, 5.0]], requires_grad=True)
    exponent = mt.Tensor([[2.0, 2.0], [3.0, 2.0]], requires_grad=True)
    power_core = mt.execute_custom_op_py("power", [base._tensor, exponent._tensor])
    power = mt.Tensor.__new__(mt.Tensor)
    power._tensor = power_core
    assert power.tolist() == [[4.0, 9.0], [64.0, 25.0]]

    input_tensor = mt.Tensor([[1.0, 2.0, 3.0, 4.0]], requires_grad=True)
    weight = mt.Tensor([1.0, 1.0, 1.0, 1.0], requires_grad=True)
    bias = mt.Tensor([0.0, 0.0, 0.0, 0.0], requires_grad=True)
    norm_core = mt.execute_custom_op_py("layer_norm", [input_tensor._tensor, weight._tensor, bias._tensor])
    normalized = mt.Tensor.__new__(mt.Tensor)
    normalized._tensor = norm_core
    assert abs(normalized.mean().item()) < 1e-6


def test_examples_come_back_after_they_were_unregistered():
    swish = mt.ops.swish
    mt.unregister_custom_op_py("swish")
    assert not mt.is_custom_op_registered_py("swish")
    mt.register_example_custom_ops()
    assert mt.is_custom_op_registered_py("swish")
    x = mt.Tensor([1.0], requires_grad=True)
    mt.ops.swish(x).backward()
    assert x.grad is not None
    assert mt.ops.swish is not swish
    assert swish(x).item() == x.swish().item() == mt.ops.swish(x).item()
    assert mt.ops.silu(x).item() == mt.ops.swish(x).item()


def test_execution_takes_tensors_too():
    x = mt.Tensor([1.0])
    assert mt.execute_custom_op_py("swish", [x]).item() == mt.ops.swish(x).item()
    assert mt.execute_custom_op("clamp", [x], hi=0.5).item() == 0.5
