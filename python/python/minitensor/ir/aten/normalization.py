"""Normalization over rows, groups and batches."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ... import _minitensor as mt
from ... import ops
from ..native import rule
from .promotion import Tensor, computed


def _flat(x: Tensor | None, shape: Sequence[int]) -> Tensor | None:
    return None if x is None else ops.reshape(x, list(shape))


@rule("layer_norm")
def _layer_norm(
    input: Tensor,  # noqa: A002 - the schema
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    count = math.prod(normalized_shape)
    if len(normalized_shape) == 1:
        return ops.layer_norm(input, weight, bias, eps)
    x = ops.reshape(input, [*input.shape[: input.ndim - len(normalized_shape)], count])
    return ops.reshape(ops.layer_norm(x, _flat(weight, [count]), _flat(bias, [count]), eps), input.shape)


def _moments(x: Tensor, axes: Sequence[int], eps: float) -> tuple[Tensor, Tensor]:
    """Returns the mean, and the reciprocal of the standard deviation."""
    x = computed(x)
    return ops.mean(x, list(axes), True), ops.rsqrt(ops.var(x, list(axes), 0.0, True) + eps)


@rule("native_layer_norm", in_steps=True)
def _native_layer_norm(
    input: Tensor,  # noqa: A002 - the schema
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> list[Tensor]:
    axes = range(input.ndim - len(normalized_shape), input.ndim)
    return [_layer_norm(input, normalized_shape, weight, bias, eps), *_moments(input, axes, eps)]


@rule("rms_norm")
def _rms_norm(
    input: Tensor,  # noqa: A002 - the schema
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    # That of the dtype in which it is computed.
    epsilon = 2.0**-52 if input.dtype.name == "float64" else 2.0**-23
    count = math.prod(normalized_shape)
    x = ops.reshape(input, [*input.shape[: input.ndim - len(normalized_shape)], count])
    return ops.reshape(ops.rms_norm(x, _flat(weight, [count]), epsilon if eps is None else eps), input.shape)


@rule("group_norm")
def _group_norm(
    input: Tensor,  # noqa: A002 - the schema
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    return ops.group_norm(input, weight, bias, num_groups, eps)


@rule("native_group_norm", in_steps=True)
def _native_group_norm(
    input: Tensor,  # noqa: A002 - the schema
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,  # noqa: N803 - the schema
    C: int,  # noqa: N803
    HxW: int,  # noqa: N803
    group: int,
    eps: float,
) -> list[Tensor]:
    mean, rstd = _moments(ops.reshape(input, [N, group, C // group * HxW]), [2], eps)
    result = ops.group_norm(input, weight, bias, group, eps)
    return [result, ops.reshape(mean, [N, group]), ops.reshape(rstd, [N, group])]


def _channels(x: Tensor) -> tuple[list[int], list[int]]:
    """Returns the axes other than the channels, and the shape of a number for each channel."""
    return [i for i in range(x.ndim) if i != 1], [-1 if i == 1 else 1 for i in range(x.ndim)]


def _applied(x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Normalizes the channels. The factor and the term of each channel are computed once."""
    _, shape = _channels(x)
    scale = rstd if weight is None else rstd * weight
    shift = ops.negative(mean * scale) if bias is None else bias - mean * scale
    return x * ops.reshape(scale, shape) + ops.reshape(shift, shape)


@rule("_native_batch_norm_legit_no_training", in_steps=True)
def _batch_norm_inference(
    input: Tensor,  # noqa: A002 - the schema
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> list[Tensor]:
    empty = mt.zeros(0, dtype=running_mean.dtype)
    return [_applied(input, running_mean, ops.rsqrt(running_var + eps), weight, bias), empty, empty]


@rule("_native_batch_norm_legit.no_stats", when=lambda attrs: attrs.get("training") is True, in_steps=True)
def _batch_norm(
    input: Tensor,  # noqa: A002 - the schema
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> list[Tensor]:
    axes, _ = _channels(input)
    mean, rstd = (ops.reshape(t, [input.shape[1]]) for t in _moments(input, axes, eps))
    return [_applied(input, mean, rstd, weight, bias), mean, rstd]


@rule("_native_batch_norm_legit_functional", when=lambda attrs: attrs.get("training") is True, in_steps=True)
def _batch_norm_training(
    input: Tensor,  # noqa: A002 - the schema
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> list[Tensor]:
    result, mean, rstd = _batch_norm(input, weight, bias, training, momentum, eps)
    axes, _ = _channels(input)
    variance = ops.var(input, axes, 1.0)
    return [
        result,
        mean,
        rstd,
        mean * momentum + running_mean * (1.0 - momentum),
        variance * momentum + running_var * (1.0 - momentum),
    ]


@rule("batch_norm", when=lambda attrs: attrs.get("training") is False, in_steps=True)
def _batch_norm_composite(
    input: Tensor,  # noqa: A002 - the schema
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    return _applied(input, running_mean, ops.rsqrt(running_var + eps), weight, bias)


@rule("instance_norm", when=lambda attrs: attrs.get("use_input_stats") is True and attrs.get("running_mean", 0) is None)
def _instance_norm(
    input: Tensor,  # noqa: A002 - the schema
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: None,
    running_var: None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    return ops.instance_norm(input, weight, bias, eps)
