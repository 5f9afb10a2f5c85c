"""Convolutions and pooling."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import _minitensor as mt
from ... import ops
from ..native import rule
from .indexing import grid
from .promotion import Tensor, is_float
from .views import part

_CONV: dict[int, Callable[..., Tensor]] = {1: ops.conv1d, 2: ops.conv2d, 3: ops.conv3d}
_CONV_TRANSPOSE: dict[int, Callable[..., Tensor]] = {
    1: ops.conv_transpose1d,
    2: ops.conv_transpose2d,
    3: ops.conv_transpose3d,
}
Sizes = int | Sequence[int]


def sizes(value: Sizes, rank: int) -> list[int]:
    """Returns a number for each axis."""
    values = [value] if isinstance(value, int) else list(value)
    return values * rank if len(values) == 1 else values


@rule("convolution", "_convolution")
def _convolution(
    input: Tensor,  # noqa: A002 - the schema
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
    benchmark: bool = False,
    deterministic: bool = False,
    cudnn_enabled: bool = False,
    allow_tf32: bool = False,
) -> Tensor:
    rank = weight.ndim - 2
    s, p, d = (sizes(value, rank) for value in (stride, padding, dilation))
    if transposed:
        return _CONV_TRANSPOSE[rank](input, weight, bias, s, p, sizes(output_padding, rank), groups, d)
    return _CONV[rank](input, weight, bias, s, p, d, groups)


@rule("conv1d", "conv2d", "conv3d", "conv1d.padding", "conv2d.padding", "conv3d.padding")
def _conv(
    input: Tensor,  # noqa: A002 - the schema
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    rank = weight.ndim - 2
    s, d = sizes(stride, rank), sizes(dilation, rank)
    if isinstance(padding, str):
        totals = [dil * (k - 1) if padding == "same" else 0 for dil, k in zip(d, weight.shape[2:], strict=True)]
        # An odd total has one more at the end.
        input = ops.pad(input, [n for total in totals for n in (total // 2, total - total // 2)])  # noqa: A001
        padding = 0
    return _CONV[rank](input, weight, bias, s, sizes(padding, rank), d, groups)


@rule("conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input")
def _conv_transpose(
    input: Tensor,  # noqa: A002 - the schema
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    rank = weight.ndim - 2
    s, p, o, d = (sizes(value, rank) for value in (stride, padding, output_padding, dilation))
    return _CONV_TRANSPOSE[rank](input, weight, bias, s, p, o, groups, d)


def _avg_pool(rank: int, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def compute(
        self: Tensor,
        kernel_size: Sizes,
        stride: Sizes = (),
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        kernel = sizes(kernel_size, rank)
        steps = sizes(stride, rank) if stride != [] and stride != () else kernel
        if divisor_override is None:
            return function(self, kernel, steps, sizes(padding, rank), ceil_mode, count_include_pad)
        wide, _ = windows(self, kernel, steps, sizes(padding, rank), [1] * rank, ceil_mode, 0.0)
        return ops.sum(wide, -1) / float(divisor_override)

    return compute


_AVG_POOL = {rank: _avg_pool(rank, getattr(ops, f"avg_pool{rank}d")) for rank in (1, 2, 3)}
for _rank, _function in _AVG_POOL.items():
    rule(f"avg_pool{_rank}d")(_function)


def _max_pool(rank: int, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def compute(
        self: Tensor,
        kernel_size: Sizes,
        stride: Sizes = (),
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> Tensor:
        kernel = sizes(kernel_size, rank)
        steps = sizes(stride, rank) if stride != [] and stride != () else kernel
        return function(self, kernel, steps, sizes(padding, rank), sizes(dilation, rank), ceil_mode)

    return compute


for _rank in (1, 2, 3):
    rule(f"max_pool{_rank}d")(_max_pool(_rank, getattr(ops, f"max_pool{_rank}d")))


def _output_size(n: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    span = n + 2 * p - d * (k - 1) - 1
    count = (-(-span // s) if ceil_mode else span // s) + 1
    # The last window begins inside of the tensor or its padding before it.
    return count - 1 if ceil_mode and (count - 1) * s >= n + p else count


def windows(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    outside: float,
) -> tuple[Tensor, Tensor]:
    """Returns the elements of each window as a last axis, and their positions in a row of all elements of an image."""
    rank = len(kernel)
    image = x.shape[-rank:]
    counts = [_output_size(*args, ceil_mode) for args in zip(image, kernel, stride, padding, dilation, strict=True)]
    positions = mt.zeros((*counts, *kernel), dtype="int64")
    is_inside = mt.full((*counts, *kernel), True, dtype="bool")
    for axis in range(rank):
        at = grid([counts[axis], kernel[axis]], [stride[axis], dilation[axis]], -padding[axis])
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = counts[axis], kernel[axis]
        at = ops.reshape(at, shape)
        is_inside = ops.logical_and(is_inside, ops.logical_and(ops.ge(at, 0), ops.lt(at, image[axis])))
        positions = positions + at * math.prod(image[axis + 1 :])
    window = [*counts, math.prod(kernel)]
    positions, is_inside = ops.reshape(positions, window), ops.reshape(is_inside, window)
    positions = ops.where(is_inside, positions, 0)
    flat = ops.reshape(x, [*x.shape[:-rank], math.prod(image)])
    found = ops.reshape(ops.take(flat, ops.reshape(positions, [positions.size]), -1), [*x.shape[:-rank], *window])
    if not is_float(x.dtype.name):
        outside = -(2 ** (8 * x.dtype.itemsize - 1)) if math.isinf(outside) else int(outside)
    return ops.where(is_inside, found, outside), positions


def _max_pool_with_indices(rank: int) -> Callable[..., list[Tensor]]:
    def compute(
        self: Tensor,
        kernel_size: Sizes,
        stride: Sizes = (),
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> list[Tensor]:
        kernel = sizes(kernel_size, rank)
        steps = sizes(stride, rank) if stride != [] and stride != () else kernel
        found, positions = windows(
            self, kernel, steps, sizes(padding, rank), sizes(dilation, rank), ceil_mode, float("-inf")
        )
        best = ops.argmax(found, -1, True)
        indices = ops.gather(ops.expand(positions, found.shape), best, -1)
        return [ops.amax(found, -1), ops.reshape(indices, found.shape[:-1])]

    return compute


for _rank in (2, 3):
    rule(f"max_pool{_rank}d_with_indices")(_max_pool_with_indices(_rank))
rule("max_pool1d_with_indices")(_max_pool_with_indices(1))


def _adaptive(rank: int, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def compute(self: Tensor, output_size: Sizes) -> Tensor:
        return function(self, sizes(output_size, rank))

    return compute


for _rank in (1, 2, 3):
    _names = [f"adaptive_avg_pool{_rank}d"] + ([f"_adaptive_avg_pool{_rank}d"] if _rank > 1 else [])
    rule(*_names)(_adaptive(_rank, getattr(ops, f"adaptive_avg_pool{_rank}d")))


def _adaptive_max_pool(rank: int) -> Callable[..., list[Tensor]]:
    def compute(self: Tensor, output_size: Sizes) -> list[Tensor]:
        image, counts = self.shape[-rank:], sizes(output_size, rank)
        flat = ops.reshape(self, [*self.shape[:-rank], math.prod(image)])
        values, indices = [], []
        for window in itertools.product(*map(range, counts)):
            bounds = [(i * n // c, -(-(i + 1) * n // c)) for i, n, c in zip(window, image, counts, strict=True)]
            strides = [math.prod(image[axis + 1 :]) for axis in range(rank)]
            offset = sum(a * s for (a, _), s in zip(bounds, strides, strict=True))
            at = grid([b - a for a, b in bounds], strides, offset)
            at = ops.reshape(at, [at.size])
            found = ops.take(flat, at, -1)
            values.append(ops.amax(found, -1))
            indices.append(ops.take(at, ops.argmax(found, -1)))
        shape = [*self.shape[:-rank], *counts]
        return [ops.reshape(ops.stack(v, -1), shape) for v in (values, indices)]

    return compute


for _rank in (1, 2, 3):
    rule(f"adaptive_max_pool{_rank}d")(_adaptive_max_pool(_rank))


@rule("im2col")
def _im2col(self: Tensor, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Tensor:
    return ops.unfold(self, *(sizes(v, 2) for v in (kernel_size, dilation, padding, stride)))


@rule("col2im")
def _col2im(
    self: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> Tensor:
    return ops.fold(self, *(sizes(v, 2) for v in (output_size, kernel_size, dilation, padding, stride)))


def padded(x: Tensor, pad: Sequence[int], mode: str) -> Tensor:
    """Extends axes by elements of the tensor: `reflect`, `replicate` or `circular`.

    The pairs of sizes begin with the last axis.
    """
    position = _OUTSIDE[mode]
    for i in range(len(pad) // 2):
        axis = x.ndim - 1 - i
        n = x.shape[axis]
        before, after = pad[2 * i], pad[2 * i + 1]
        if before < 0 or after < 0:
            x = part(x, axis, max(-before, 0), n - max(-before, 0) - max(-after, 0))
            n, before, after = x.shape[axis], max(before, 0), max(after, 0)
        if before or after:
            x = ops.take(x, position(mt.arange(-before, n + after, dtype="int64"), n), axis)
    return x


#: The elements that positions out of an axis of `n` elements read.
_OUTSIDE: dict[str, Callable[[Tensor, int], Tensor]] = {
    "reflect": lambda j, n: (n - 1) - ops.abs((n - 1) - ops.abs(j)),
    "replicate": lambda j, n: ops.minimum(ops.maximum(j, 0), n - 1),
    "circular": lambda j, n: ops.remainder(j, n),
}


def _padding(mode: str) -> Callable[..., Tensor]:
    return lambda self, padding: padded(self, padding, mode)


rule("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")(_padding("reflect"))
rule("replication_pad1d", "replication_pad2d", "replication_pad3d")(_padding("replicate"))


@rule("pad")
def _pad(self: Tensor, pad: Sequence[int], out_dtype: str, mode: str = "constant", value: Any = None) -> Tensor:
    from .views import _constant_pad_nd

    if mode == "constant":
        return _constant_pad_nd(self, pad, out_dtype, value or 0)  # type: ignore[no-any-return]
    return padded(self, pad, mode)
