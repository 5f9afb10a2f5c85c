"""Rules for calls of ATen at 16 bits: results are those of PyTorch within a rounding, or no worse."""

import warnings

import pytest
import torch
import torch_ir_calls as calls
from minitensor.ir import native
from minitensor.torch_ir.fallback import find_op
from torch_ir_rows import ROWS
from torch_ir_samples import OPS, is_compared, own_samples

HALF = {"float16": torch.float16, "bfloat16": torch.bfloat16}
#: What the ops of minitensor refuse; PyTorch computes it. Each is a part of the message.
REFUSED = (
    "needs eps >= 0",
    "needs correction >= 0",
    "but the IR has",
    "index -1 is out of range for size 0",
    "start must be a finite real number",
    "tuple index out of range",
    "takes two parts of float32 or float64",
    "unknown dtype 'complex32'",
)
#: The least number of rules that the samples exercise at each dtype.
LEAST = 400
EXERCISED = {name: set() for name in HALF}


def converted(value, change):
    """The value with other tensors and dtypes."""
    if isinstance(value, (torch.Tensor, torch.dtype)):
        return change(value)
    if isinstance(value, (list, tuple)):
        return [converted(item, change) for item in value]
    if isinstance(value, dict):
        return {name: converted(item, change) for name, item in value.items()}
    return value


def in_double(value):
    """A tensor or a dtype of 16 bits as one of 64."""
    if isinstance(value, torch.dtype):
        return torch.float64 if value in HALF.values() else value
    return value.double() if value.dtype in HALF.values() else value


def exact_results(op, args, kwargs):
    """What PyTorch computes in float64; None if it does not."""
    try:
        return calls.flat(op(*converted(args, in_double), **converted(kwargs, in_double)))
    except (RuntimeError, TypeError, NotImplementedError):
        return None


def agrees(found, theirs, exact):
    """Whether each element is that of PyTorch or the exact one, within a rounding, or no worse than that of PyTorch."""
    if not theirs.is_floating_point():
        return torch.equal(found, theirs)
    if theirs.dtype not in HALF.values():
        return torch.allclose(found, theirs, rtol=2e-5, atol=1e-5, equal_nan=True)
    unit, a, b = torch.finfo(theirs.dtype).eps, found.double(), theirs.double()
    # A float32 that cancels, as in log(softmax), has an error relative to 1.
    is_near = (a == b) | (a.isnan() & b.isnan()) | ((a - b).abs() <= unit * b.abs() + 1e-6)
    if exact is not None and exact.shape == theirs.shape:
        c = exact.to(theirs.dtype).double()
        error = (a - c).abs()
        is_near |= (a == c) | (error <= unit * c.abs()) | (error <= (b - c).abs())
    return bool(is_near.all())


def compare(op, args, kwargs, results):
    """Whether the rule computes the call. Raises AssertionError if it differs from PyTorch."""
    given = calls.flat([*args, *kwargs.values()])
    computed = calls.computed(op, args, kwargs, results, REFUSED)
    if computed is None:
        return False
    node, found = computed
    exact = exact_results(op, args, kwargs) or [None] * len(results)
    for ours, theirs, right in zip(found, results, exact, strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), node
        assert not is_compared(op, given) or agrees(ours, theirs, right), f"{node}\n{ours}\n{theirs}\n{right}"
    return True


def has_half(op, args, kwargs, results):
    return any(t.dtype in HALF.values() for t in (*results, *calls.flat([*args, *kwargs.values()])))


@pytest.mark.parametrize("name", HALF)
@pytest.mark.parametrize("info", OPS, ids=lambda info: info.full_name)
def test_rules_agree_with_pytorch_on_its_samples(info, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        for call in own_samples(info, [HALF[name]]):
            op_type = calls.op_type_of(call[0])
            if op_type in native.RULES and has_half(*call) and compare(*call):
                EXERCISED[name].add(op_type)


@pytest.mark.parametrize("name", HALF)
@pytest.mark.parametrize("op_name", ROWS)
def test_rules_agree_with_pytorch_on_rows(op_name, name):
    def narrow(value):
        if isinstance(value, torch.dtype):
            return value
        return value.to(HALF[name]) if value.dtype is torch.float32 else value

    full = f"aten.{op_name}" if "." in op_name else f"aten.{op_name}.default"
    op = find_op(full)
    for row in ROWS[op_name]:
        *args, kwargs = row if isinstance(row[-1], dict) else (*row, {})
        args, kwargs = converted(args, narrow), converted(kwargs, narrow)
        try:
            results = calls.flat(op(*args, **kwargs))
        except (RuntimeError, NotImplementedError):
            # PyTorch does not compute it at 16 bits.
            continue
        if has_half(op, args, kwargs, results) and compare(op, args, kwargs, results):
            EXERCISED[name].add(full)


@pytest.mark.parametrize("name", HALF)
def test_most_rules_are_exercised(name):
    if len(EXERCISED[name]) < 200:
        pytest.skip("the other tests of this file were not selected")
    assert len(EXERCISED[name]) >= LEAST
