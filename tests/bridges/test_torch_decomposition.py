"""Decompositions: programs of ops as functions of PyTorch's own ops."""

import subprocess
import sys

import minitensor.torch as mtt
import pytest
import torch
from minitensor._minitensor import _op_names
from minitensor.torch import decomposition
from minitensor.torch.registration import find
from sample_calls import call_ours, flat, gradients_of_ours, is_float, samples
from torch_samples import assert_same, call_torch, gradients_of_torch

import minitensor as mt

NAMES = [name for name in _op_names() if find(name).decompositions]


class Decompose(torch.utils._python_dispatch.TorchDispatchMode):
    """Computes ops by their decompositions, and counts these."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        decompose = mtt.decompositions().get(func)
        found = NotImplemented if decompose is None else decompose(*args)
        if found is NotImplemented:
            return func(*args, **(kwargs or {}))
        self.count += 1
        return found


@pytest.mark.parametrize("name", NAMES)
def test_results_and_gradients_are_those_of_the_kernels(name):
    op = find(name)
    for sample in samples(name):
        expected = call_ours(name, sample)
        if isinstance(expected, Exception):
            continue
        with Decompose() as mode:
            assert_same(expected, call_torch(op.op, op, sample))
        floats = [t for t in flat(sample[0]) if is_float(t)]
        is_real = floats and not any("complex" in str(t.dtype) for t in floats)
        assert mode.count == 0 or is_real
        gradients = gradients_of_ours(name, sample) if op.definition.is_differentiable else None
        if gradients is not None:
            with Decompose():
                assert_same(gradients, gradients_of_torch(op.op, op, sample))


def test_most_calls_of_real_floats_have_decompositions():
    without = []
    for name in NAMES:
        op = find(name)
        x = [sample for sample in samples(name) if all("float" in str(t.dtype) for t in flat(sample[0]))]
        with Decompose() as mode:
            for sample in x[:1]:
                call_torch(op.op, op, sample)
        if x and mode.count == 0:
            without.append(name)
    # PyTorch has no recurrences.
    assert without == ["row::prod_of_others_vjp"]


def test_other_calls_are_not_decomposed():
    table = mtt.decompositions()
    swish, softmax = torch.ops.minitensor.swish, torch.ops.minitensor.softmax
    assert table[swish.default](torch.ones(2, dtype=torch.complex64)) is NotImplemented
    assert table[swish.default](torch.ones(2, dtype=torch.int32)) is NotImplemented
    assert torch.ops.minitensor.matmul.default not in table
    second = "1_01_111"
    assert table[torch.ops.minitensor.swish_gradient.default]([torch.ones(2)] * 3, [], second) is NotImplemented
    assert table[softmax.default](torch.ones(0, 3), 0).shape == (0, 3)


def test_rows_without_dimensions_and_without_elements():
    table, ops = mtt.decompositions(), torch.ops.minitensor
    for op, x in ((ops.logsumexp, torch.tensor(1.5)), (ops.var, torch.tensor(1.5)), (ops.layer_norm, torch.ones(2, 0))):
        torch.testing.assert_close(table[op.default](x), op(x), equal_nan=True)
    with pytest.raises(IndexError, match="axis"):
        table[ops.softmax.default](torch.ones(2, 3), 5)


@pytest.mark.parametrize("name", ["swish", "sign", "gelu", "softplus", "mish"])
def test_special_values(name):
    op = find(name)
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e30, -1e30])
    torch.testing.assert_close(op.decompositions[op.op](x), op.op(x), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_floats_are_computed_in_float32(dtype):
    x = torch.randn(3, 50).to(dtype)
    found = mtt.decompositions()[torch.ops.minitensor.layer_norm.default](x)
    torch.testing.assert_close(found, mtt.layer_norm(x), rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_other_devices_compute_decompositions():
    # This machine may have no other device: the kernel is called directly.
    x = torch.randn(3, 4)
    op = find("softmax")
    torch.testing.assert_close(op._compute_elsewhere(op.decompositions[op.op], x, 0), torch.softmax(x, 0))
    with pytest.raises(NotImplementedError, match="op 'sort' computes such tensors on the device 'cpu' only"):
        find("sort")._compute_elsewhere(lambda *_: NotImplemented, x)


@pytest.mark.parametrize("name", NAMES)
def test_the_fingerprint_of_an_op_has_its_program(name):
    definition = find(name).definition
    assert any("'is_of_rows'" in text for text in decomposition.programs(definition))
    assert decomposition.fingerprint(definition) == decomposition.fingerprint(definition)


PROGRAM = """
import torch
import minitensor as mt
import minitensor.torch as mtt
from torch._inductor.utils import run_and_get_code

def f(x, w):
    return mtt.layer_norm(mtt.swish(x) + x, w).square().mean()

def run():
    torch._dynamo.reset()
    leaves = [torch.linspace(-3, 3, 12).reshape(3, 4).requires_grad_(), torch.ones(4, requires_grad=True)]
    found, codes = run_and_get_code(lambda: torch.compile(f, fullgraph=True)(*leaves).backward())
    return [t.grad for t in leaves], any("torch.ops.minitensor" in code for code in codes)

kernels, has_kernels = run()
mtt.register(decompose=True)
decomposed, still_has_kernels = run()
assert has_kernels and not still_has_kernels
for a, b in zip(kernels, decomposed, strict=True):
    torch.testing.assert_close(a, b)

# Calls with integers have no decomposition, and tensors may have no dimensions.
x = torch.ones(3, requires_grad=True)
torch.compile(lambda x: (mtt.multiply(x, torch.tensor(2)) + mtt.multiply(x, x)).sum())(x).backward()
assert x.grad.tolist() == [4.0, 4.0, 4.0]
assert torch.compile(mtt.equal)(torch.ones(2), torch.tensor([1, 0])).tolist() == [True, False]
torch.testing.assert_close(torch.compile(lambda y: mtt.exp(y))(torch.tensor(2.0)), torch.tensor(2.0).exp())
"""


def test_inductor_fuses_decomposed_ops():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


ROWS = {
    "shift": lambda x: x.shift(2) + x.shift(-1) * x.shift(2**62),
    "reverse": lambda x: x * x.reverse(),
    "cummax": lambda x: x.cummax() - x.cummin(),
    "sort": lambda x: x.sort() * x,
    "take": lambda x: x.take(x.argsort().argsort()),
    "put": lambda x: x.put(mt.ops.floor(mt.ops.abs(x) * 3)),
}


@pytest.mark.parametrize("name", ROWS)
def test_functions_of_whole_rows(name):
    mt.row_op(name=f"whole_rows::{name}")(ROWS[name])
    try:
        mtt.register()
        op = find(f"whole_rows::{name}")
        x = torch.sin(torch.arange(24.0) * 7).reshape(4, 6)
        torch.testing.assert_close(op.decompositions[op.op](x), op.op(x))
    finally:
        mt.unregister_custom_op_py(f"whole_rows::{name}")


def test_recurrences_have_kernels_only():
    mt.row_op(name="whole_rows::filtered")(lambda x: x.recurrence(x))
    mt.row_op(name="whole_rows::scanned")(lambda x: x.scan(lambda before, x: before * x + x))
    try:
        mtt.register()
        op = find("whole_rows::filtered")
        assert op.decompositions[op.op](torch.ones(2, 3)) is NotImplemented
        assert op.op(torch.ones(3)).tolist() == [1.0, 2.0, 3.0]
        scanned = find("whole_rows::scanned")
        assert scanned.decompositions[scanned.op](torch.ones(2, 3)) is NotImplemented
        x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
        torch.testing.assert_close(torch.compile(scanned.op, fullgraph=True)(x), op.op(x))
        assert torch.autograd.gradcheck(scanned.op, x.detach().double().requires_grad_())
    finally:
        mt.unregister_custom_op_py("whole_rows::filtered")
        mt.unregister_custom_op_py("whole_rows::scanned")
