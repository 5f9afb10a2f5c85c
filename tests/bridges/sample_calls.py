"""Sample calls of every op in minitensor."""

import functools
import importlib
import sys
from pathlib import Path

import numpy as np
from minitensor._minitensor import _array_function, _samples

import minitensor as mt


@functools.cache
def samples(name):
    """The inputs and attributes of the calls that opcheck tries, or else those of the comparison with NumPy."""
    found = _samples(name)
    if not found:
        cases = [c for c in reference().CASES if c.name == name and all(0 not in shape for _, shape in c.inputs)]
        for case in cases[:3]:
            arguments = tuple(mt.Tensor(a) for a in reference().arrays(case, 1))
            found += _samples(name, arguments, case.attrs)
    return found


@functools.cache
def reference():
    """The tests that compare ops with NumPy."""
    folder = str(Path(__file__).parents[1] / "python")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("test_reference")
    finally:
        sys.path.remove(folder)


def mapped(change, inputs):
    """The inputs, with each tensor changed."""
    if isinstance(inputs, list):
        return [mapped(change, i) for i in inputs]
    return None if inputs is None else change(inputs)


def flat(items):
    """All tensors in nested lists, without the absent ones."""
    if isinstance(items, list | tuple):
        return [t for item in items for t in flat(item)]
    return [] if items is None else [items]


def is_float(t):
    return "float" in str(t.dtype) or "complex" in str(t.dtype)


def call_ours(name, sample):
    """The results in minitensor, or else the changed inputs; or the error."""
    inputs, attrs = sample
    inputs = mapped(lambda t: t.detach().clone(), inputs)
    mt.manual_seed(0)
    try:
        return flat(_array_function(name)(*inputs, **attrs)) or flat(inputs)
    except Exception as error:
        return error


def cotangents(outputs):
    """A cotangent for each output, as an array of float64."""
    rng = np.random.default_rng(1)
    return [rng.uniform(0.5, 1.5, tuple(t.shape)) for t in outputs]


def gradients_of_ours(name, sample):
    """The gradients in minitensor; None if the call fails, has none, or draws random numbers."""
    if name == "dropout" and sample[1]["training"]:
        return None
    inputs, attrs = sample
    leaves = mapped(lambda t: t.detach().clone(), inputs)
    wanted = [t for t in flat(leaves) if is_float(t)]
    for t in wanted:
        t.requires_grad = True
    try:
        outputs = [t for t in flat(_array_function(name)(*leaves, **attrs)) if t.requires_grad]
        if not outputs:
            return None
        given = [mt.Tensor(c).astype(t.dtype) for c, t in zip(cotangents(outputs), outputs, strict=True)]
        found = mt.grad(outputs, wanted, given, allow_unused=True)
    except Exception:
        return None
    return [mt.zeros_like(t) if g is None else g for g, t in zip(found, wanted, strict=True)]
