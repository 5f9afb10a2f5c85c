"""Gradients that a graph of training has: those of our own ops."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ... import _minitensor as mt
from ... import ops
from ..._grad_mode import enable_grad
from ..native import rule
from .promotion import Tensor
from .windows import _AVG_POOL, _convolution


def vjp(function: Callable[..., Tensor], inputs: Sequence[Tensor | None], cotangent: Tensor) -> list[Any]:
    """Returns the gradients of the inputs; None for those that are None."""
    with enable_grad():
        leaves = [None if x is None else x.detach().requires_grad_() for x in inputs]
        result = function(*leaves)
        given = [leaf for leaf in leaves if leaf is not None]
        found = iter(mt.grad(result, given, cotangent))
    return [None if leaf is None else next(found).detach() for leaf in leaves]


def _selected(gradients: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    """Returns the gradients that are wanted. An IR has no results that are None."""
    return [g for g, is_wanted in zip(gradients, mask, strict=True) if is_wanted]


@rule("convolution_backward", when=lambda attrs: attrs.get("output_mask") is not None)
def _convolution_backward(
    grad_output: Tensor,
    input: Tensor,  # noqa: A002 - the schema
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> list[Tensor]:
    bias = mt.zeros(tuple(bias_sizes), dtype=weight.dtype) if bias_sizes else None

    def forward(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
        return _convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups)  # type: ignore[no-any-return]

    found = vjp(forward, [input, weight, bias], grad_output)
    if found[2] is None:
        found[2] = ops.sum(grad_output, [i for i in range(grad_output.ndim) if i != 1])
    return _selected(found, output_mask)


@rule("avg_pool2d_backward")
def _avg_pool2d_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    pool = functools.partial(
        _AVG_POOL[2],
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    )
    return vjp(pool, [self], grad_output)[0]  # type: ignore[no-any-return]


@rule("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward")
def _adaptive_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    rank = 2 if grad_output.ndim < 5 and self.ndim < 5 else 3
    pool = ops.adaptive_avg_pool2d if rank == 2 else ops.adaptive_avg_pool3d
    return vjp(lambda x: pool(x, list(grad_output.shape[-rank:])), [self], grad_output)[0]  # type: ignore[no-any-return]


@rule("max_pool2d_with_indices_backward")
def _max_pool2d_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    batch, image = self.shape[:-2], self.shape[-2:]
    rows = ops.reshape(grad_output, [*batch, -1]), ops.reshape(indices, [*batch, -1])
    return ops.reshape(ops.scatter(*rows, image[0] * image[1], -1), self.shape)


@rule("embedding_dense_backward")
def _embedding_backward(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int = -1, scale_grad_by_freq: bool = False
) -> Tensor:
    width = grad_output.shape[-1]
    index = ops.astype(ops.reshape(indices, [indices.size]), "int64")
    rows = ops.reshape(grad_output, [indices.size, width])
    if padding_idx >= 0:
        rows = ops.where(ops.reshape(ops.eq(index, padding_idx), [-1, 1]), 0.0, rows)
    return ops.scatter_rows(rows, index, num_weights)


@rule("native_layer_norm_backward", in_steps=True)
def _layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,  # noqa: A002 - the schema
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> list[Tensor]:
    first = input.ndim - len(normalized_shape)
    inner, outer = list(range(first, input.ndim)), list(range(first))
    normalized = (input - mean) * rstd
    scaled = grad_out if weight is None else grad_out * weight
    found = [
        _normalized_backward(scaled, normalized, rstd, inner),
        ops.sum(grad_out * normalized, outer) if outer else grad_out * normalized,
        ops.sum(grad_out, outer) if outer else grad_out,
    ]
    return _selected(found, output_mask)


def _normalized_backward(cotangent: Tensor, normalized: Tensor, rstd: Tensor, axes: Sequence[int]) -> Tensor:
    """The gradient of `(x - mean) · rstd` over axes."""
    average = ops.mean(cotangent, list(axes), True)
    slope = ops.mean(cotangent * normalized, list(axes), True)
    return rstd * (cotangent - average - normalized * slope)


@rule("native_group_norm_backward", in_steps=True)
def _group_norm_backward(
    grad_out: Tensor,
    input: Tensor,  # noqa: A002 - the schema
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    N: int,  # noqa: N803 - the schema
    C: int,  # noqa: N803
    HxW: int,  # noqa: N803
    group: int,
    output_mask: Sequence[bool],
) -> list[Tensor]:
    shape = [N, group, C // group, HxW]
    x, cotangent = ops.reshape(input, shape), ops.reshape(grad_out, shape)
    scale = ops.reshape(rstd, [N, group, 1, 1])
    normalized = (x - ops.reshape(mean, [N, group, 1, 1])) * scale
    scaled = cotangent if weight is None else cotangent * ops.reshape(weight, [1, group, C // group, 1])
    found = [
        ops.reshape(_normalized_backward(scaled, normalized, scale, [2, 3]), input.shape),
        ops.reshape(ops.sum(cotangent * normalized, [0, 3]), [C]),
        ops.reshape(ops.sum(cotangent, [0, 3]), [C]),
    ]
    return _selected(found, output_mask)
