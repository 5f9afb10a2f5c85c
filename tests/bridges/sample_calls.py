"""Sample calls of every op in minitensor."""

import functools
import importlib
import sys
from pathlib import Path

from minitensor._minitensor import _samples

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
