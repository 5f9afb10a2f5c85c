"""Compares each rule for a call of ATen with PyTorch: with PyTorch's own samples, and with the rows of a table."""

import warnings

import pytest
import torch
import torch_ir_calls as calls
from minitensor.ir import native
from minitensor.torch_ir.fallback import find_op
from torch_ir_rows import ROWS
from torch_ir_samples import OPS, is_compared, own_samples

#: What the ops of minitensor refuse; PyTorch computes it. Each is a part of the message.
REFUSED = (
    "got bool",
    "needs eps >= 0",
    "needs correction >= 0",
    "but the IR has",
    "index -1 is out of range for size 0",
    "PyTorch rounds the steps of integers",
    "start must be a finite real number",
    "tuple index out of range",
)


def refused_or_compared(op, args, kwargs, results):
    """Whether the rule computes the call. Raises AssertionError if it differs from PyTorch."""
    given = calls.flat([*args, *kwargs.values()])
    computed = calls.computed(op, args, kwargs, results, REFUSED)
    if computed is None:
        return False
    node, found = computed
    for result, wanted in zip(found, results, strict=True):
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        if not is_compared(op, given):
            continue
        if wanted.is_floating_point() or wanted.is_complex():
            scale = wanted.abs().nan_to_num(0, 0, 0).max().item() if wanted.numel() else 0
            torch.testing.assert_close(
                result, wanted, rtol=2e-5, atol=1e-5 * max(1, scale), equal_nan=True, msg=str(node)
            )
        else:
            assert torch.equal(result, wanted), node
    return True


EXERCISED: set[str] = set()


@pytest.mark.parametrize("info", OPS, ids=lambda info: info.full_name)
def test_rules_agree_with_pytorch_on_its_samples(info):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        for op, args, kwargs, results in own_samples(info, (torch.float32, torch.int64, torch.bool)):
            name = calls.op_type_of(op)
            if any(t.dtype is torch.complex32 for t in results):
                continue
            if name in native.RULES and refused_or_compared(op, args, kwargs, results):
                EXERCISED.add(name)


@pytest.mark.parametrize("name", ROWS)
def test_rules_agree_with_pytorch_on_rows(name):
    full = f"aten.{name}" if "." in name else f"aten.{name}.default"
    op = find_op(full)
    for row in ROWS[name]:
        *args, kwargs = row if isinstance(row[-1], dict) else (*row, {})
        results = calls.flat(op(*args, **kwargs))
        assert refused_or_compared(op, args, kwargs, results), f"{name}{row} was refused"
    EXERCISED.add(full)


def test_every_rule_is_exercised(request):
    if len(EXERCISED) < 300:
        pytest.skip("the other tests of this file were not selected")
    assert sorted(native.RULES.keys() - EXERCISED) == []


def test_the_parameters_of_rules_are_those_of_the_schemas():
    for full, rule in native.RULES.items():
        op = find_op(full)
        assert op is not None, full
        arguments = [a.name for a in op._schema.arguments]
        required = [p for p, v in rule.parameters.items() if v.default is v.empty and p != "out_dtype"]
        assert set(required) <= set(arguments), full
        tensors = [a.name for a in op._schema.arguments if "Tensor" in str(a.type)]
        in_rule = [p for p in rule.parameters if p in tensors]
        # Tensors are given by their order.
        assert in_rule == [name for name in tensors if name in in_rule], full


def test_the_whole_core_aten_opset_has_rules():
    """All but ops of sizes, in-place ops and the ones listed here."""
    without = {"_embedding_bag", "_fft_c2r", "_fft_r2c", "_local_scalar_dense", "_native_batch_norm_legit"}
    missing = set()
    for full in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = full.partition("::")
        op = find_op(f"{namespace}.{rest}") if namespace == "aten" else None
        is_core = isinstance(op, torch._ops.OpOverload) and torch.Tag.core in op.tags
        if is_core and not rest.startswith("sym_") and not rest.endswith(("_", "out")) and str(op) not in native.RULES:
            missing.add(rest)
    assert missing == without
