"""Exports to ONNX, and what onnxruntime computes with them."""

import warnings

import numpy as np
import onnx
import onnxruntime
from minitensor._minitensor import _array_function
from onnx.reference import ReferenceEvaluator
from sample_calls import flat, mapped

import minitensor as mt

#: What onnxruntime raises if it has no kernel for a valid node.
NO_KERNEL = onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented


def array(t):
    """A tensor as an array that both runtimes take."""
    t = t.detach()
    if t.dtype == mt.bfloat16:
        import ml_dtypes

        return np.asarray(t.astype("float32")).astype(ml_dtypes.bfloat16)
    return np.asarray(t).copy()


def run(path, tensors, names=None):
    """The results of a file in onnxruntime, and whether it has kernels for all nodes. If not, those of onnx itself."""
    model = onnx.load(path)
    names = names or [i.name for i in model.graph.input]
    feeds = {name: array(t) for name, t in zip(names, tensors, strict=True)}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except NO_KERNEL:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return ReferenceEvaluator(model).run(None, feeds), False
    if any(str(t.dtype) == "bfloat16" for t in tensors):
        values = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(feed.view(np.uint16), onnx.TensorProto.BFLOAT16)
            if feed.dtype.name == "bfloat16"
            else onnxruntime.OrtValue.ortvalue_from_numpy(feed)
            for name, feed in feeds.items()
        }
        return [v.numpy() for v in session.run_with_ort_values(None, values)], True
    return session.run(None, feeds), True


def call_of(name, sample):
    """A call of an op as a function of its tensors, and the tensors."""
    inputs, attrs = sample
    tensors = [t.detach().clone() for t in flat(inputs)]

    def function(*given):
        following = iter(given)
        # Copies: an op may change its inputs.
        arguments = mapped(lambda _: next(following).clone(), list(inputs))
        return flat(_array_function(name)(*arguments, **attrs)) or flat(arguments)

    return function, tensors


def close(ours, theirs, rtol=1e-5, atol=1e-6):
    """Whether results are the same numbers of the same dtypes and shapes."""
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        a = array(a)
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        if a.dtype.name in ("float16", "bfloat16"):
            rtol, atol = (1e-3, 1e-6) if a.dtype.name == "float16" else (1e-2, 1e-6)
            a, b = a.astype("float32"), b.astype("float32")
        np.testing.assert_allclose(b, a, rtol=rtol, atol=atol, equal_nan=True)
