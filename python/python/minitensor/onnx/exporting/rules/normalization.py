"""Softmax, normalization and losses."""

from __future__ import annotations

from ....ir.symbols import Size
from ..builder import Value
from ..call import Call
from ..reductions import reduced
from ..rule import Refused, rule
from .conversion import in_dtype_of_result
from .reductions import over_axes

__all__: list[str] = []


def _number(call: Call, name: str) -> Value | None:
    return in_dtype_of_result(call, name)[0]


def _given(call: Call, name: str) -> Value:
    found = _number(call, name)
    assert found is not None and found.shape is not None
    return found


@rule("softmax")
def softmax(call: Call) -> Value:
    return _along_axis(call, "Softmax")


@rule("log_softmax")
def log_softmax(call: Call) -> Value:
    if _given(call, "x").dtype != "float32":
        raise Refused("onnxruntime returns a number for NaN in float64")
    return _along_axis(call, "LogSoftmax")


def _along_axis(call: Call, op: str) -> Value:
    x = _given(call, "x")
    assert x.shape is not None
    if not x.shape:
        raise Refused("ONNX has no softmax of a tensor without dimensions")
    return x.apply(op, axis=call.axis("axis", len(x.shape)))


@rule("logsumexp")
def logsumexp(call: Call) -> Value:
    return over_axes(call, _given(call, "x"), lambda v, axes, keepdims: reduced("ReduceLogSumExp", v, axes, keepdims))


def _filled(x: Value, value: float, size: Size) -> Value:
    """Equal numbers, in place of a weight or bias that ONNX needs."""
    if not isinstance(size, int):
        raise Refused("the size of an axis is not a number")
    return x.builder.constant([value] * size, x.dtype)


@rule("layer_norm")
def layer_norm(call: Call) -> Value:
    x, weight, bias = _given(call, "x"), _number(call, "weight"), _number(call, "bias")
    assert x.shape is not None
    # An attribute has 24 digits of two, too few for float64.
    if x.dtype != "float32" or not x.shape or x.shape[-1] == 0:
        raise Refused("ONNX has no such layer normalization")
    scale = _filled(x, 1.0, x.shape[-1]) if weight is None else weight
    return call.builder.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=float(call.plain("eps")))


@rule("rms_norm")
def rms_norm(call: Call) -> Value:
    x, weight = _given(call, "x"), _number(call, "weight")
    assert x.shape is not None
    if call.builder.functions.opset < 23 or x.dtype != "float32" or not x.shape:
        raise Refused("this opset has no such normalization")
    scale = _filled(x, 1.0, x.shape[-1]) if weight is None else weight
    return call.builder.node("RMSNormalization", x, scale, axis=-1, epsilon=float(call.plain("eps")))


def _standardized(x: Value, axes: list[int], eps: float) -> Value:
    distance = x - reduced("ReduceMean", x, axes, True)
    variance = reduced("ReduceMean", distance * distance, axes, True)
    return distance / (variance + eps).apply("Sqrt")


def _along(numbers: Value, rank: int) -> Value:
    """One number for each channel, the second axis."""
    after = list(range(1, rank - 1))
    return numbers.builder.node("Unsqueeze", numbers, numbers.builder.integers(after)) if after else numbers


def _affine(call: Call, y: Value, rank: int) -> Value:
    weight, bias = _number(call, "weight"), _number(call, "bias")
    if weight is not None:
        y = y * _along(weight, rank)
    return y if bias is None else y + _along(bias, rank)


@rule("batch_norm")
def batch_norm(call: Call) -> Value:
    x, mean, var = _given(call, "x"), _number(call, "mean"), _number(call, "var")
    weight, bias = _number(call, "weight"), _number(call, "bias")
    assert x.shape is not None
    rank, eps = len(x.shape), float(call.plain("eps"))
    if mean is None or var is None:
        return _affine(call, _standardized(x, [k for k in range(rank) if k != 1], eps), rank)
    if x.dtype != "float32" or not isinstance(x.shape[1], int):
        distance = x - _along(mean, rank)
        return _affine(call, distance / _along((var + eps).apply("Sqrt"), rank), rank)
    scale = _filled(x, 1.0, x.shape[1]) if weight is None else weight
    shift = _filled(x, 0.0, x.shape[1]) if bias is None else bias
    return call.builder.node("BatchNormalization", x, scale, shift, mean, var, epsilon=eps)


@rule("instance_norm")
def instance_norm(call: Call) -> Value:
    x = _given(call, "x")
    assert x.shape is not None
    rank = len(x.shape)
    return _affine(call, _standardized(x, list(range(2, rank)), float(call.plain("eps"))), rank)


@rule("group_norm")
def group_norm(call: Call) -> Value:
    x, b = _given(call, "x"), call.builder
    assert x.shape is not None
    split = b.node("Reshape", x, b.integers([0, call.plain("groups"), -1]))
    whole = b.node("Reshape", _standardized(split, [2], float(call.plain("eps"))), b.shape(x))
    return _affine(call, whole, len(x.shape))


def _losses(call: Call, losses: Value) -> Value:
    match call.plain("reduction"):
        case "none":
            return losses
        case "sum":
            return losses.builder.node("ReduceSum", losses, keepdims=0)
    return losses.builder.node("ReduceMean", losses, keepdims=0)


@rule("cross_entropy")
def cross_entropy(call: Call) -> Value:
    logits, target, b = _given(call, "logits"), call["target"], call.builder
    assert logits.shape is not None
    if target.shape != logits.shape[:-1]:
        raise Refused("its arguments broadcast; expand the target")
    index = b.node("Unsqueeze", target, b.integers([-1]))
    found = b.node("GatherElements", logits.apply("LogSoftmax", axis=-1), index, axis=-1)
    return _losses(call, -b.node("Squeeze", found, b.integers([-1])))


@rule("mse")
def mse(call: Call) -> Value:
    distance = _given(call, "x") - _given(call, "y")
    return _losses(call, distance * distance)
