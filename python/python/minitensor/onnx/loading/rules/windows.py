"""Convolutions and pooling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .... import ops
from ....ir.aten.promotion import is_float
from ..error import OnnxError
from ..graph import Node
from ..rule import rule
from ..values import Known, Tensor, tensor

_CONV: dict[int, Callable[..., Tensor]] = {1: ops.conv1d, 2: ops.conv2d, 3: ops.conv3d}
_CONV_TRANSPOSE: dict[int, Callable[..., Tensor]] = {
    1: ops.conv_transpose1d,
    2: ops.conv_transpose2d,
    3: ops.conv_transpose3d,
}
_MAX_POOL: dict[int, Callable[..., Tensor]] = {1: ops.max_pool1d, 2: ops.max_pool2d, 3: ops.max_pool3d}
_AVG_POOL: dict[int, Callable[..., Tensor]] = {1: ops.avg_pool1d, 2: ops.avg_pool2d, 3: ops.avg_pool3d}


@dataclass(frozen=True)
class Windows:
    """Windows on an image. Each field has a number for each axis."""

    image: Sequence[int]
    kernel: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]
    #: The number of windows.
    counts: Sequence[int]

    @property
    def missing(self) -> list[int]:
        """How many elements the last window reads beyond the image."""
        return [
            max((c - 1) * s + d * (k - 1) + 1 - n - b, 0)
            for c, s, d, k, n, b in zip(
                self.counts, self.strides, self.dilations, self.kernel, self.image, self.before, strict=True
            )
        ]

    def extended(self, x: Tensor, value: float) -> Tensor:
        """Returns the image with all that windows read."""
        pairs = [n for pair in zip(self.before, self.missing, strict=True) for n in pair]
        return ops.pad(x, pairs, value) if any(pairs) else x

    def rows(self, x: Tensor, value: float) -> Tensor:
        """Returns the elements of each window as a last axis."""
        x = self.extended(x, value)
        flat = ops.reshape(x, [*x.shape[:2], math.prod(x.shape[2:])])
        found = ops.take(flat, tensor(self.positions(x.shape[2:], 0).reshape(-1)), 2)
        return ops.reshape(found, [*x.shape[:2], *self.counts, math.prod(self.kernel)])

    def positions(self, image: Sequence[int], offset: int) -> Known:
        """Returns where in a row of all elements of an image each window reads: an axis for the windows, and one more.

        `offset` is subtracted from the position along each axis, times the padding.
        """
        found = np.zeros((1, 1), dtype="int64")
        for axis, at in enumerate(self._along()):
            stride = math.prod(image[axis + 1 :])
            part = (at - offset * self.before[axis]) * stride
            found = found[:, None, :, None] + part[None, :, None, :]
            found = found.reshape(found.shape[0] * found.shape[1], -1)
        return found

    def sizes(self, counts_padding: bool) -> Known:
        """Returns how many elements of the image each window reads, in the shape of the windows."""
        found = np.ones((), dtype="int64")
        for axis, at in enumerate(self._along()):
            low = 0 if counts_padding else self.before[axis]
            high = self.before[axis] + self.image[axis] + (self.after[axis] if counts_padding else 0)
            found = found[..., None] * ((at >= low) & (at < high)).sum(1)
        return found

    def _along(self) -> list[Known]:
        """Returns the positions along each axis: of each window, and each element of it."""
        return [
            np.arange(c)[:, None] * s + np.arange(k)[None, :] * d
            for c, s, k, d in zip(self.counts, self.strides, self.kernel, self.dilations, strict=True)
        ]


def windows(
    image: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> Windows:
    """Returns the windows that the attributes of an operator say."""
    rank = len(kernel)
    if rank not in _CONV:
        raise OnnxError(f"images of {rank} axes are not supported; expected 1 to 3")
    s, d = strides or [1] * rank, dilations or [1] * rank
    spans = [dil * (k - 1) + 1 for dil, k in zip(d, kernel, strict=True)]
    if auto_pad.startswith("SAME"):
        counts = [-(-n // step) for n, step in zip(image, s, strict=True)]
        totals = [max((c - 1) * t + p - n, 0) for c, t, p, n in zip(counts, s, spans, image, strict=True)]
        small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
        before, after = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
        return Windows(image, kernel, s, d, before, after, counts)
    given = [0] * 2 * rank if auto_pad == "VALID" or not pads else list(pads)
    before, after, counts = given[:rank], given[rank:], []
    for n, b, a, span, step in zip(image, before, after, spans, s, strict=True):
        free = n + b + a - span
        count = (-(-free // step) if ceil_mode else free // step) + 1
        # The last window begins inside of the image or the padding before it.
        counts.append(count - 1 if ceil_mode and (count - 1) * step >= n + b else count)
    if min(counts, default=1) < 1:
        raise OnnxError(f"windows of {spans} elements do not fit an image of {list(image)} with pads {pads}")
    return Windows(image, kernel, s, d, before, after, counts)


def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    auto_pad: str,
    dilations: Sequence[int] | None,
    group: int,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
) -> Tensor:
    """Returns a convolution. Padding may differ at both ends."""
    w = windows(x.shape[2:], weight.shape[2:], strides, dilations, pads, auto_pad)
    padding = list(w.before)
    if padding != list(w.after):
        x = ops.pad(x, [n for pair in zip(w.before, w.after, strict=True) for n in pair])
        padding = [0] * len(padding)
    return _CONV[len(padding)](x, weight, bias, list(w.strides), padding, list(w.dilations), group)


@rule("Conv")
def _conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    return convolution(x, weight, bias, auto_pad, dilations, group, pads, strides)


@rule("ConvTranspose")
def _conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    output_padding: list[int] | None = None,
    output_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    image, kernel = x.shape[2:], weight.shape[2:]
    rank = len(kernel)
    s, d, extra = strides or [1] * rank, dilations or [1] * rank, output_padding or [0] * rank
    before, after = (pads[:rank], pads[rank:]) if pads else ([0] * rank, [0] * rank)
    # All that the transposed convolution adds up, without padding.
    full = [(n - 1) * t + dil * (k - 1) + 1 for n, t, dil, k in zip(image, s, d, kernel, strict=True)]
    if output_shape is None and auto_pad.startswith("SAME"):
        output_shape = [n * t for n, t in zip(image, s, strict=True)]
    if output_shape is not None:
        totals = [f + e - o for f, e, o in zip(full, extra, output_shape[-rank:], strict=True)]
        small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
        before, after = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
    if all(b == a >= 0 for b, a in zip(before, after, strict=True)) and not any(extra):
        return _CONV_TRANSPOSE[rank](x, weight, bias, s, list(before), [0] * rank, group, d)
    found = _CONV_TRANSPOSE[rank](x, weight, None, s, [0] * rank, [0] * rank, group, d)
    pairs = []
    for axis, (b, a) in enumerate(zip(before, after, strict=True)):
        end = a - extra[axis]
        found = ops.slice(found, axis + 2, max(b, 0), full[axis] - max(end, 0))
        pairs += [max(-b, 0), max(-end, 0)]
    found = ops.pad(found, pairs) if any(pairs) else found
    return found if bias is None else found + ops.reshape(bias, [-1, *[1] * rank])


def _least(x: Tensor) -> float:
    if is_float(x.dtype.name):
        return -math.inf
    return 0 if x.dtype.kind == "unsigned" else -(2 ** (8 * x.dtype.itemsize - 1))


@rule("MaxPool")
def _max_pool(
    x: Tensor,
    *,
    node: Node,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    storage_order: int = 0,
    strides: list[int] | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    w = windows(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    rank = len(kernel_shape)
    if node.wants(1):
        rows = w.rows(x, _least(x))
        best = ops.argmax(rows, -1)
        image = list(x.shape[2:])
        # The positions are those of the image without padding, and of all images one after the other.
        inner = w.positions(image, 1) if not storage_order else _by_columns(w)
        table = tensor(inner.reshape(-1))
        first = np.arange(math.prod(inner.shape[:1])).reshape(w.counts) * inner.shape[1]
        batch = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * rank) * math.prod(image)
        indices = ops.take(table, ops.reshape(best + tensor(first), [best.size]))
        return ops.amax(rows, -1), ops.reshape(indices, best.shape) + tensor(batch)
    sizes = [list(w.kernel), list(w.strides)]
    if (
        list(w.before) == list(w.after)
        and not ceil_mode
        and all(2 * b <= k for b, k in zip(w.before, w.kernel, strict=True))
    ):
        return _MAX_POOL[rank](x, *sizes, list(w.before), list(w.dilations))
    found = _MAX_POOL[rank](w.extended(x, _least(x)), *sizes, [0] * rank, list(w.dilations))
    return _cropped(found, w.counts)


def _by_columns(w: Windows) -> Known:
    """Returns the positions of windows in a column-major row of all elements."""
    image, kernel, strides, dilations, before, after, counts = (
        list(reversed(sizes)) for sizes in (w.image, w.kernel, w.strides, w.dilations, w.before, w.after, w.counts)
    )
    turned = Windows(image, kernel, strides, dilations, before, after, counts)
    found = turned.positions(turned.image, 1).reshape(*turned.counts, *turned.kernel)
    rank = len(w.counts)
    order = [*reversed(range(rank)), *reversed(range(rank, 2 * rank))]
    return found.transpose(order).reshape(math.prod(w.counts), -1)


def _cropped(x: Tensor, counts: Sequence[int]) -> Tensor:
    """Removes windows at the end that only the extension of the image has."""
    for axis, count in enumerate(counts):
        if x.shape[axis + 2] != count:
            x = ops.slice(x, axis + 2, 0, count)
    return x


def _window_sums(x: Tensor, w: Windows) -> Tensor:
    if any(d != 1 for d in w.dilations):
        return ops.sum(w.rows(x, 0.0), -1)
    means = _AVG_POOL[len(w.kernel)](w.extended(x, 0.0), list(w.kernel), list(w.strides))
    return _cropped(means, w.counts) * float(math.prod(w.kernel))


@rule("AveragePool", since=7)
def _average_pool(
    x: Tensor,
    *,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    w = windows(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    if not any((*w.before, *w.after, *w.missing)) and all(d == 1 for d in w.dilations):
        return _AVG_POOL[len(kernel_shape)](x, list(w.kernel), list(w.strides))
    return _window_sums(x, w) / ops.astype(tensor(w.sizes(bool(count_include_pad))), x.dtype)


@rule("LpPool", since=2)
def _lp_pool(
    x: Tensor,
    *,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: list[int] | None = None,
    p: int = 2,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    w = windows(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    return ops.power(_window_sums(ops.power(ops.abs(x), float(p)), w), 1.0 / p)


@rule("GlobalAveragePool")
def _global_average_pool(x: Tensor) -> Tensor:
    return ops.mean(x, list(range(2, x.ndim)), True)


@rule("GlobalMaxPool")
def _global_max_pool(x: Tensor) -> Tensor:
    return ops.amax(x, list(range(2, x.ndim)), True)


@rule("GlobalLpPool", since=2)
def _global_lp_pool(x: Tensor, *, p: int = 2) -> Tensor:
    return ops.power(ops.sum(ops.power(ops.abs(x), float(p)), list(range(2, x.ndim)), True), 1.0 / p)


@rule("MaxUnpool")
def _max_unpool(
    x: Tensor,
    indices: Tensor,
    output_shape: Known | None = None,
    *,
    kernel_shape: list[int],
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    rank = len(kernel_shape)
    s, p = strides or [1] * rank, pads or [0] * 2 * rank
    image = [(n - 1) * s[k] + kernel_shape[k] - p[k] - p[k + rank] for k, n in enumerate(x.shape[2:])]
    small = [*x.shape[:2], *image]
    row = ops.scatter(ops.reshape(x, [x.size]), ops.reshape(indices, [x.size]), math.prod(small), 0)
    found = ops.reshape(row, small)
    if output_shape is None:
        return found
    # The positions are those of the smaller image; a larger one has zeros at the end.
    return ops.pad(found, [n for k, size in enumerate(output_shape.tolist()) for n in (0, size - small[k])])


@rule("Col2Im")
def _col2im(
    x: Tensor,
    image_shape: Known,
    block_shape: Known,
    *,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    image, block = image_shape.tolist(), block_shape.tolist()
    rank = len(block)
    w = windows(image, block, strides, dilations, pads)
    padded = [n + b + a for n, b, a in zip(image, w.before, w.after, strict=True)]
    channels = x.shape[1] // math.prod(block)
    # Elements of all windows, and where in a row of the padded image they are added.
    rows = ops.reshape(ops.reshape(x, [x.shape[0], channels, math.prod(block), x.shape[2]]), [x.shape[0], channels, -1])
    positions = tensor(w.positions(padded, 0).T.reshape(-1))
    row = ops.scatter(rows, ops.expand(positions, rows.shape), math.prod(padded), -1)
    found = ops.reshape(row, [x.shape[0], channels, *padded])
    for axis in range(rank):
        found = ops.slice(found, axis + 2, w.before[axis], w.before[axis] + image[axis])
    return found
