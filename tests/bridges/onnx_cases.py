"""The cases of single nodes of the package `onnx`, and what of them is not supported."""

from __future__ import annotations

import functools
import re
import warnings
from typing import Any

import numpy as np
import onnx
from minitensor.onnx import NarrowTensor
from onnx import numpy_helper

import minitensor as mt

#: The cases that do not pass, as patterns of their names, with the reason.
NOT_SUPPORTED = {
    r"test_image_decoder_.*": "minitensor decodes no images; decode them before the model",
    r"test_dft_inverse(_opset19)?": "the expected zeros are 2e-7, by rounding in NumPy, and the tolerance is 1e-7; "
    "minitensor computes 3e-15",
    r"test_attention_4d_causal_fp16(_expanded)?": "the expected results round each step of softmax to 16 bits; "
    "minitensor rounds its result once, so 2 of 192 elements differ by 2 units in the last place",
}
#: The cases whose results are random numbers of NumPy. Their shapes and dtypes are compared.
RANDOM = r"test_bernoulli.*|test_training_dropout(_default)?(_mask)?"


@functools.cache
def cases() -> dict[str, Any]:
    """Returns the cases by name."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        # Some cases divide by zero on purpose.
        warnings.simplefilter("ignore")
        return {case.name: case for case in collect_testcases(None)}


def is_random(name: str) -> bool:
    return re.fullmatch(RANDOM, name) is not None


def reason(name: str) -> str | None:
    """Returns why a case is not supported; None if it is."""
    return next((why for pattern, why in NOT_SUPPORTED.items() if re.fullmatch(pattern, name)), None)


def given(value: Any) -> Any:
    """Returns an input or an expected output as arrays."""
    match value:
        case onnx.TensorProto():
            return numpy_helper.to_array(value)
        case onnx.SequenceProto():
            return numpy_helper.to_list(value)
        case onnx.OptionalProto():
            return numpy_helper.to_optional(value)
        case list():
            return [given(item) for item in value]
    return value if value is None else np.asarray(value)


def array(value: Any) -> Any:
    """Returns a result as arrays."""
    if isinstance(value, list):
        return [array(item) for item in value]
    if isinstance(value, mt.Tensor):
        return value.detach().numpy()
    return value.numpy() if isinstance(value, NarrowTensor) else value


def run(case: Any) -> list[tuple[list[Any], list[Any]]]:
    """Returns the results and the expected outputs for each set of inputs."""
    model = mt.onnx.load(case.model)
    names = [info.name for info in case.model.graph.input]
    found = []
    for inputs, outputs in case.data_sets:
        with mt.no_grad():
            results = model(**dict(zip(names, map(given, inputs), strict=False)))
        results = (results,) if len(outputs) == 1 else results
        found.append(([array(result) for result in results], [given(output) for output in outputs]))
    return found


def assert_equal(found: Any, expected: Any, rtol: float, atol: float) -> None:
    """Compares results as the package does: dtypes and shapes are equal, and numbers are close."""
    if isinstance(expected, list):
        assert isinstance(found, list)
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_equal(a, b, rtol, atol)
        return
    if expected is None:
        assert found is None
        return
    assert isinstance(found, np.ndarray)
    assert found.shape == expected.shape
    if expected.dtype.kind in "OUS":
        np.testing.assert_array_equal(found, expected)
        return
    assert found.dtype == expected.dtype
    if expected.dtype.name == "bfloat16":
        # Two units in the last place.
        rtol = max(rtol, 2**-6)
    if expected.dtype.kind not in "biufc":
        found, expected = found.astype("float32"), expected.astype("float32")
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
