"""PyTorch's own samples of its ops, as calls of ATen."""

import sys
import types
import unittest

import torch
import torch_ir_calls as calls
from minitensor.ir import native
from minitensor.torch_ir.fallback import find_op

# The samples of PyTorch are in a module that imports this package for tests of PyTorch itself.
try:
    import expecttest  # noqa: F401
except ImportError:
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase = unittest.TestCase
from torch.testing._internal.common_methods_invocations import op_db

__all__ = ["OPS", "is_compared", "name_of", "own_samples"]

native._load()

#: The ops with samples.
OPS = [info for info in op_db if "jiterator" not in info.name]
#: The ops whose results are random or not defined: only shapes and dtypes are compared.
UNDEFINED = ("rand", "randn", "randperm", "rand_like", "randn_like", "empty", "empty_like", "empty_permuted")
UNDEFINED += ("empty_strided", "new_empty", "new_empty_strided")
#: The positions of equal elements are not defined.
POSITIONS = ("sort", "argsort", "topk")
#: The most samples of an op in PyTorch, for each dtype.
MOST = 8


def name_of(op):
    """The name of an op without its overload."""
    return str(op).split(".")[1]


def has_equal_elements(tensors):
    """Whether a tensor has an element twice."""
    return any(t.numel() != t.unique().numel() for t in tensors)


def is_compared(op, given):
    """Whether PyTorch defines the elements of the results."""
    return name_of(op) not in UNDEFINED and not (name_of(op) in POSITIONS and has_equal_elements(given))


def own_samples(info, dtypes):
    """The calls of ATen that an op of PyTorch leads to with its samples of these dtypes."""
    for dtype in dtypes:
        if dtype not in info.dtypes:
            continue
        samples = list(info.sample_inputs("cpu", dtype, requires_grad=False))
        for sample in samples[:: len(samples) // MOST + 1]:
            args = (sample.input, *sample.args)
            recorder = calls.Recorder()
            try:
                with recorder, torch.no_grad():
                    info(*args, **sample.kwargs)
            except (RuntimeError, TypeError, NotImplementedError):
                continue
            yield from recorder.calls
            yield from direct_calls({info.aten_name, info.name.split(".")[-1]}, args, sample.kwargs)


def direct_calls(names, args, kwargs):
    """The same arguments, for the composite ops of these names."""
    for full in native.RULES:
        if full.split(".")[1] in names:
            op = find_op(full)
            try:
                results = op(*args, **kwargs)
            except (RuntimeError, TypeError, ValueError, IndexError):
                continue
            types_ = {a.name: str(a.type) for a in op._schema.arguments}
            passed = dict(zip(types_, args, strict=False))
            # PyTorch also takes tensors and bools for numbers.
            if all(is_of_type(value, types_[name]) for name, value in passed.items()):
                yield op, args, kwargs, calls.flat(results)


def is_of_type(value, kind):
    """Whether a value is of the type of a parameter of a schema."""
    if isinstance(value, bool):
        return "bool" in kind or "number" in kind
    return "Tensor" in kind or not calls.flat(value)
