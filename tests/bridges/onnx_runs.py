"""Exports to ONNX, and what onnxruntime computes with them."""

import contextlib

import numpy as np
import onnx
import onnxruntime
from minitensor._minitensor import _array_function
from sample_calls import flat, mapped

import minitensor as mt
from minitensor import nn

#: The relative errors of numbers that are rounded to a dtype, and those of others.
_TOLERANCES = {"float16": 1e-3, "float32": 1e-5, "float64": 1e-9}


def run(path, tensors):
    """The results of a file in onnxruntime."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return session.run(None, {name: np.asarray(t.detach()) for name, t in zip(names, tensors, strict=True)})


def call_of(name, sample):
    """A call of an op as a function of its tensors, and the tensors."""
    inputs, attrs = sample

    def function(*tensors):
        following = iter(tensors)
        # Copies: an op may change its inputs.
        arguments = mapped(lambda _: next(following).clone(), list(inputs))
        # The steps of optimizers have no gradient.
        with mt.no_grad() if name.endswith("_step") else contextlib.nullcontext():
            return flat(_array_function(name)(*arguments, **attrs)) or flat(arguments)

    return function, [t.detach().clone() for t in flat(inputs)]


def results(value):
    """The tensors of a result, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in results(item)] if isinstance(value, list | tuple) else [value]


def expect_close(theirs, ours, **tolerances):
    """Results are the same numbers, of the same dtypes and shapes."""
    assert len(theirs) == len(ours)
    for found, t in zip(theirs, ours, strict=True):
        expected = np.asarray(t.detach())
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        options = {"rtol": _TOLERANCES.get(expected.dtype.name, 0), "atol": 1e-6} | tolerances
        np.testing.assert_allclose(found, expected, equal_nan=True, **options)


def expect_same(path, model, *examples, export=None, **tolerances):
    """The exported model computes the same for each example; the first is recorded."""
    exported = model if isinstance(model, nn.Module) else mt.jit(model)
    mt.onnx.export(exported, path, tuple(examples[0]), **(export or {}))
    if isinstance(model, nn.Module):
        model.eval()
    for example in examples:
        expect_close(run(path, example), results(model(*example)), **tolerances)
    return onnx.load(path)
