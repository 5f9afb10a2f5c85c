"""Reference implementations of convolutions and pooling, as loops over kernel positions and windows."""

from itertools import product
from math import ceil, floor

import numpy as np


def each(value, rank):
    """Returns one number for each axis."""
    value = [value] if isinstance(value, int) else list(value)
    return value * rank if len(value) == 1 else value


def taps(kernel):
    return product(*map(range, kernel))


def seen(x, tap, counts, stride, dilation):
    """Returns the elements of the padded `x` at one kernel position of all windows."""
    places = zip(tap, counts, stride, dilation, strict=True)
    return x[(..., *(slice(t * d, t * d + (n - 1) * s + 1, s) for t, n, s, d in places))]


def counts_of(sizes, kernel, stride, dilation):
    return [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(sizes, kernel, stride, dilation, strict=True)]


def conv(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    rank = weight.ndim - 2
    stride, padding, dilation = each(stride, rank), each(padding, rank), each(dilation, rank)
    x = np.pad(x, [(0, 0)] * (x.ndim - rank) + [(p, p) for p in padding])
    counts = counts_of(x.shape[-rank:], weight.shape[2:], stride, dilation)
    batch, (o, i) = x.shape[: -rank - 1], weight.shape[:2]
    out = np.zeros((*batch, groups, o // groups, np.prod(counts, dtype=int)))
    for tap in taps(weight.shape[2:]):
        found = seen(x, tap, counts, stride, dilation).reshape(*batch, groups, i, np.prod(counts, dtype=int))
        out += weight[(..., *tap)].reshape(groups, o // groups, i) @ found
    out = out.reshape(*batch, o, *counts)
    return out if bias is None else out + bias.reshape(-1, *[1] * rank)


def conv_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    rank = weight.ndim - 2
    stride, padding, dilation, more = (each(v, rank) for v in (stride, padding, dilation, output_padding))
    counts, kernel = x.shape[-rank:], weight.shape[2:]
    sizes = [(n - 1) * s + d * (k - 1) + 1 for n, k, s, d in zip(counts, kernel, stride, dilation, strict=True)]
    batch, (c, o) = x.shape[: -rank - 1], weight.shape[:2]
    out = np.zeros((*batch, groups * o, *(n + m for n, m in zip(sizes, more, strict=True))))
    parts = x.reshape(*batch, groups, c // groups, np.prod(counts, dtype=int))
    for tap in taps(kernel):
        given = weight[(..., *tap)].reshape(groups, c // groups, o).swapaxes(-1, -2) @ parts
        seen(out, tap, counts, stride, dilation)[...] += given.reshape(*batch, groups * o, *counts)
    out = out[(..., *(slice(p, n + m - p) for p, n, m in zip(padding, sizes, more, strict=True)))]
    return out if bias is None else out + bias.reshape(-1, *[1] * rank)


def unfold(x, kernel_size, dilation=1, padding=0, stride=1):
    kernel, stride, padding, dilation = (each(v, 2) for v in (kernel_size, stride, padding, dilation))
    x = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(p, p) for p in padding])
    counts = counts_of(x.shape[-2:], kernel, stride, dilation)
    columns = np.stack([seen(x, tap, counts, stride, dilation) for tap in taps(kernel)], -3)
    return columns.reshape(*x.shape[:-3], -1, np.prod(counts, dtype=int))


def fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    kernel, stride, padding, dilation = (each(v, 2) for v in (kernel_size, stride, padding, dilation))
    sizes = [n + 2 * p for n, p in zip(output_size, padding, strict=True)]
    counts = counts_of(sizes, kernel, stride, dilation)
    columns = x.reshape(*x.shape[:-2], -1, *kernel, *counts)
    out = np.zeros((*x.shape[:-2], columns.shape[-5], *sizes))
    for tap in taps(kernel):
        seen(out, tap, counts, stride, dilation)[...] += columns[(..., *tap, slice(None), slice(None))]
    return out[(..., *(slice(p, n + p) for p, n in zip(padding, output_size, strict=True)))]


def pool(x, rank, of_window, counts, bounds):
    """Applies `of_window` to the elements in every window; `bounds(axis, i)` returns a slice."""
    out = np.empty((*x.shape[:-rank], *counts))
    for at in product(*map(range, counts)):
        place = [bounds(axis, i) for axis, i in enumerate(at)]
        out[(..., *at)] = of_window(x[(..., *place)], at)
    return out


def pool_counts(sizes, kernel, stride, padding, dilation, ceil_mode):
    counts = []
    for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        count = (ceil if ceil_mode else floor)((n + 2 * p - d * (k - 1) - 1) / s) + 1
        counts.append(count - (ceil_mode and (count - 1) * s >= n + p))
    return counts


def max_pool(x, rank, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    kernel, padding, dilation = each(kernel_size, rank), each(padding, rank), each(dilation, rank)
    stride = each(kernel_size if stride is None else stride, rank)
    counts = pool_counts(x.shape[-rank:], kernel, stride, padding, dilation, ceil_mode)
    reach = [(c - 1) * s + d * (k - 1) + 1 for c, s, d, k in zip(counts, stride, dilation, kernel, strict=True)]
    behind = [max(p, r - p - n) for p, r, n in zip(padding, reach, x.shape[-rank:], strict=True)]
    margins = [(0, 0)] * (x.ndim - rank) + list(zip(padding, behind, strict=True))
    x = np.pad(x, margins, constant_values=-np.inf)

    def bounds(axis, i):
        start = i * stride[axis]
        return slice(start, start + dilation[axis] * (kernel[axis] - 1) + 1, dilation[axis])

    return pool(x, rank, lambda w, _: w.max(tuple(range(-rank, 0))), counts, bounds)


def avg_pool(x, rank, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    kernel, padding = each(kernel_size, rank), each(padding, rank)
    stride = each(kernel_size if stride is None else stride, rank)
    sizes = x.shape[-rank:]
    counts = pool_counts(sizes, kernel, stride, padding, [1] * rank, ceil_mode)

    def whole(axis, i):
        start = i * stride[axis] - padding[axis]
        return start, min(start + kernel[axis], sizes[axis] + padding[axis])

    def bounds(axis, i):
        start, end = whole(axis, i)
        return slice(max(start, 0), min(end, sizes[axis]))

    def mean(window, at):
        edges = [whole(axis, i) for axis, i in enumerate(at)]
        area = np.prod([b - a for a, b in edges]) if count_include_pad else np.prod(window.shape[-rank:])
        return window.sum(tuple(range(-rank, 0))) / area

    return pool(x, rank, mean, counts, bounds)


def adaptive_avg_pool(x, rank, output_size):
    sizes, counts = x.shape[-rank:], each(output_size, rank)

    def bounds(axis, i):
        n, count = sizes[axis], counts[axis]
        return slice(i * n // count, -(-(i + 1) * n // count))

    return pool(x, rank, lambda w, _: w.mean(tuple(range(-rank, 0))), counts, bounds)


def conv_weight(x, y, kernel, stride, padding, dilation, groups):
    """Returns the gradient of `conv` with respect to its weight: for each kernel position, its elements times `y`."""
    x = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])
    n, o, *counts = y.shape
    parts = y.reshape(n, groups, o // groups, -1)
    out = np.empty((o, x.shape[1] // groups, *kernel))
    for tap in taps(kernel):
        found = seen(x, tap, counts, stride, dilation).reshape(n, groups, x.shape[1] // groups, -1)
        out[(..., *tap)] = (parts @ found.swapaxes(-1, -2)).sum(0).reshape(o, -1)
    return out


def spread(y, n, bounds, counts):
    out = np.zeros((*y.shape[:-2], n, y.shape[-1]))
    for i, count in enumerate(counts):
        out[..., bounds[2 * i] : bounds[2 * i + 1], :] += y[..., i : i + 1, :] / count
    return out
