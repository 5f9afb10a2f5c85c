"""`mt.onnx.load` against the cases of single nodes of the package `onnx`."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from minitensor.onnx.loading.elements import DTYPES
from onnx import helper, numpy_helper
from onnx_cases import NOT_SUPPORTED, array, assert_equal, cases, given, is_random, reason, run

import minitensor as mt

NAMES = list(cases())


@pytest.mark.parametrize("name", [name for name in NAMES if reason(name) is None and not is_random(name)])
def test_a_node_computes_what_onnx_expects(name):
    case = cases()[name]
    for found, expected in run(case):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_equal(a, b, case.rtol, case.atol)


@pytest.mark.parametrize("name", [name for name in NAMES if is_random(name)])
def test_a_random_node_has_the_shapes_and_dtypes_that_onnx_expects(name):
    for found, expected in run(cases()[name]):
        assert [(a.shape, a.dtype) for a in found] == [(b.shape, b.dtype) for b in expected]


@pytest.mark.parametrize("name", [name for name in NAMES if reason(name) is not None])
def test_a_case_that_is_listed_as_not_supported_does_not_pass(name):
    case = cases()[name]
    with pytest.raises((AssertionError, ValueError)):
        for found, expected in run(case):
            for a, b in zip(found, expected, strict=True):
                assert_equal(a, b, case.rtol, case.atol)


def test_at_least_98_of_100_cases_pass():
    passing = [name for name in NAMES if reason(name) is None and not is_random(name)]
    assert len(NAMES) > 1500
    assert len(passing) / len(NAMES) >= 0.98


def test_each_reason_is_that_of_a_case():
    for pattern, why in NOT_SUPPORTED.items():
        assert any(reason(name) == why for name in NAMES), pattern


def _with_weights(case):
    """Returns the model of a case with all inputs but the first as initializers, and the first; None for others."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    # Since this version, initializers need not be inputs.
    model.ir_version = max(model.ir_version, 4)
    inputs = [given(value) for value in case.data_sets[0][0]]
    dtypes = {value.dtype.name if isinstance(value, np.ndarray) else "" for value in inputs}
    if not inputs or not dtypes <= set(DTYPES.values()):
        return None
    infos = list(model.graph.input)
    del model.graph.input[1:]
    for info, value in zip(infos[1:], inputs[1:], strict=False):
        model.graph.initializer.append(numpy_helper.from_array(value, info.name))
    return model, mt.Tensor(inputs[0])


#: The operators that a graph of `mt.jit` does not have: their first input must be known, because it says a shape or
#: because NumPy computes them, or their results are not tensors.
NOT_IN_GRAPHS = {
    "AffineGrid",
    "BitCast",
    "BlackmanWindow",
    "Cast",
    "CastLike",
    "ConstantOfShape",
    "HammingWindow",
    "HannWindow",
    "If",
    "Loop",
    "MelWeightMatrix",
    "NonMaxSuppression",
    "Range",
    "TfIdfVectorizer",
    "TreeEnsemble",
    "Unique",
}


@pytest.mark.parametrize("name", [n for n in NAMES if not (reason(n) or is_random(n) or n.endswith("_expanded"))])
def test_under_jit_a_node_with_weights_computes_the_same(name):
    case = cases()[name]
    found = _with_weights(case)
    if found is None:
        pytest.skip("the inputs are not tensors")
    proto, x = found
    jitted = mt.jit(mt.onnx.load(proto))
    with mt.no_grad():
        try:
            jitted(x)
        except (RuntimeError, ValueError, TypeError) as error:
            if not re.search("reads the elements|returned a NarrowTensor|branches return tensors", str(error)):
                raise
            assert any(node.op_type in NOT_IN_GRAPHS for node in proto.graph.node), error
            pytest.skip("a graph does not have this operator")
        results = jitted(x)
    expected = [given(output) for output in case.data_sets[0][1]]
    results = (results,) if len(expected) == 1 else results
    for a, b in zip(results, expected, strict=True):
        assert_equal(array(a), b, case.rtol, case.atol)


def _with_constants(case):
    """Returns the model of a case without inputs: a node computes each. None if they are not numbers."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    inputs = [given(value) for value in case.data_sets[0][0]]
    if not all(isinstance(value, np.ndarray) and value.dtype.kind in "biuf" for value in inputs):
        return None
    nodes = [
        helper.make_node("Constant", [], [info.name], value=numpy_helper.from_array(value))
        for info, value in zip(model.graph.input, inputs, strict=False)
    ]
    nodes += model.graph.node
    del model.graph.input[:], model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


@pytest.mark.parametrize("name", [n for n in NAMES if reason(n) is None and not is_random(n)])
def test_known_numbers_are_computed_as_tensors_are(name):
    case = cases()[name]
    model = _with_constants(case)
    opset = max((o.version for o in case.model.opset_import if o.domain == ""), default=0)
    if model is None or opset < 13:
        pytest.skip("the inputs are not numbers, or the opset is older than the rules of known numbers")
    with mt.no_grad():
        results = mt.onnx.load(model)()
    expected = [given(output) for output in case.data_sets[0][1]]
    results = (results,) if len(expected) == 1 else results
    for a, b in zip(results, expected, strict=True):
        assert_equal(array(a), b, case.rtol, case.atol)
