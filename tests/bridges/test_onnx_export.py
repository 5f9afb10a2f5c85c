"""Every registered op, exported to ONNX and run by onnxruntime."""

import doctest

import pytest
from minitensor._minitensor import _op_names
from onnx_runs import call_of, expect_close, run
from sample_calls import call_ours, flat, mapped, samples

import minitensor as mt

pytestmark = pytest.mark.usefixtures("exports_quickly")


NAMES = _op_names()
DTYPES = ["float64", "float32", "float16", "bfloat16", "bool", "int8", "int16", "int32", "int64"]
DTYPES += ["uint8", "uint16", "uint32", "uint64"]

_RANDOM = "it draws random numbers"
_COMPLEX = "ONNX has no arithmetic of complex numbers"
#: The ops that cannot be exported, and the reason.
NOT_EXPORTED = {
    "complex": _COMPLEX,
    "imag": _COMPLEX,
    "rand_like": _RANDOM,
    "random::dropout": _RANDOM,
    "random::integers": _RANDOM,
    "random::key": _RANDOM,
    "random::normal": _RANDOM,
    "random::skip": _RANDOM,
    "random::uniform": _RANDOM,
    "row::nonzero": "it has no rule for ONNX",
}


def converted(t, dtype):
    """A float64 tensor in another dtype: integers are small, and unsigned ones are positive."""
    if t.dtype != mt.float64 or dtype == "float64":
        return t
    if dtype == "bool":
        return t > 0
    if "int" in dtype:
        whole = (t * 3).astype("int64")
        return (whole.abs() if dtype[0] == "u" else whole).astype(dtype)
    return t.astype(dtype)


def calls(name, dtype):
    """The calls that the op accepts."""
    known = set()
    for inputs, attrs in samples(name):
        if name == "dropout":
            attrs = attrs | {"training": False}
        sample = mapped(lambda t: converted(t, dtype), inputs), attrs
        if dtype != "float64" and not any(str(t.dtype) == dtype for t in flat(sample[0])):
            continue
        expected = call_ours(name, sample)
        # Samples of the same shapes have other numbers.
        seen = str([(t.dtype, t.shape) for t in flat(sample[0])]) + str(attrs)
        if dtype not in ("float32", "float64") and seen in known:
            continue
        known.add(seen)
        if not isinstance(expected, Exception) and not any(t.dtype.is_complex for t in flat(inputs)):
            yield sample, expected


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_EXPORTED])
def test_results_equal_those_of_minitensor(name, tmp_path):
    path = tmp_path / "op.onnx"
    for dtype in DTYPES:
        for sample, expected in calls(name, dtype):
            function, tensors = call_of(name, sample)
            if dtype == "bfloat16":
                function, tensors = in_float32(function, tensors)
                expected = [t.astype("float32") if t.dtype == mt.bfloat16 else t for t in expected]
            mt.onnx.export(mt.jit(function), path, tuple(tensors))
            rtol = {"rtol": 1e-2} if dtype == "bfloat16" else {}
            expect_close(run(path, tensors), expected, **rtol)


def in_float32(function, tensors):
    """A function of bfloat16, which NumPy lacks, as one of float32."""
    dtypes = [t.dtype for t in tensors]

    def wide(*given):
        found = function(*(t.astype(dtype) for t, dtype in zip(given, dtypes, strict=True)))
        return [t.detach().astype("float32") if t.dtype == mt.bfloat16 else t for t in found]

    return wide, [t.astype("float32") if t.dtype == mt.bfloat16 else t for t in tensors]


@pytest.mark.parametrize("name", NOT_EXPORTED)
def test_ops_that_are_not_exported_raise_and_say_why(name, tmp_path):
    path = tmp_path / "op.onnx"
    for sample in samples(name):
        if isinstance(call_ours(name, sample), Exception):
            continue
        function, tensors = call_of(name, sample)
        with pytest.raises(ValueError, match=f"node '.*' \\(op '({name}|clone)'\\): {NOT_EXPORTED[name]}.*; "):
            mt.onnx.export(mt.jit(function), path, tuple(tensors))
        assert not path.exists()


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_numbers_raise(name, tmp_path):
    x = mt.ones(3, dtype=name)
    for function in (mt.ops.exp, lambda x: x + 1, mt.ops.sum, lambda x: mt.ops.matmul(x, x), mt.ops.real):
        with pytest.raises(ValueError, match="complex numbers"):
            mt.onnx.export(mt.jit(function), tmp_path / "op.onnx", x)


def test_the_examples_in_docstrings_run():
    assert doctest.testmod(mt.onnx).failed == 0


@pytest.mark.parametrize("opset", [20, 23, 28])
@pytest.mark.parametrize(
    "name", ["layer_norm", "rms_norm", "gelu", "softmax", "max", "conv2d", "sort", "cumsum", "isinf"]
)
def test_other_opsets(name, opset, tmp_path):
    for sample, expected in calls(name, "float32"):
        function, tensors = call_of(name, sample)
        mt.onnx.export(mt.jit(function), tmp_path / "op.onnx", tuple(tensors), opset=opset)
        expect_close(run(tmp_path / "op.onnx", tensors), expected)
