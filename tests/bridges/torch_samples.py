"""Sample calls of every op, in minitensor and in PyTorch."""

import torch
from minitensor.torch.definition import DTYPES
from sample_calls import cotangents, flat, is_float, mapped

import minitensor as mt


def to_torch(tensor):
    """A copy as a tensor of PyTorch, which is contiguous."""
    return torch.from_dlpack(tensor.detach().clone()).clone(memory_format=torch.contiguous_format)


def torch_attrs(attrs):
    return {k: DTYPES[str(v)] if isinstance(v, mt.DType) else v for k, v in attrs.items()}


def positional(op, sample):
    """The arguments of a call in PyTorch by position."""
    inputs, attrs = sample
    attrs = torch_attrs(attrs)
    return (*mapped(to_torch, inputs), *[attrs[a.name] for a in op.definition.attrs])


def call_torch(call, op, sample):
    """The results in PyTorch, or the changed inputs."""
    args = positional(op, sample)
    mt.manual_seed(0)
    return flat(call(*args)) or flat(args[: len(op.definition.inputs)])


def gradients_of_torch(call, op, sample):
    """The gradients in PyTorch."""
    args = positional(op, sample)
    count = len(op.definition.inputs)
    leaves = mapped(lambda t: t.requires_grad_() if is_float(t) else t, list(args[:count]))
    wanted = [t for t in flat(leaves) if is_float(t)]
    outputs = [t for t in flat(call(*leaves, *args[count:])) if t.requires_grad]
    given = [torch.from_numpy(c).to(t.dtype) for c, t in zip(cotangents(outputs), outputs, strict=True)]
    found = torch.autograd.grad(outputs, wanted, given, allow_unused=True)
    return [torch.zeros_like(t) if g is None else g for g, t in zip(found, wanted, strict=True)]


def assert_same(ours, theirs):
    """The same numbers, shapes and dtypes."""
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(b.detach(), to_torch(a), rtol=1e-6, atol=1e-6, equal_nan=True)
