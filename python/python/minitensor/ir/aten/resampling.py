"""Images of another size, and values between pixels."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import _minitensor as mt
from ... import ops
from ..native import rule
from .promotion import Tensor

Scales = Sequence[float | None]


def _output_sizes(x: Tensor, rank: int, output_size: Sequence[int] | None, scales: Sequence[float] | None) -> list[int]:
    if output_size is not None:
        return list(output_size)
    assert scales is not None
    return [int(n * scale) for n, scale in zip(x.shape[-rank:], scales, strict=True)]


def _step(size: int, output: int, scale: float | None, align_corners: bool) -> float:
    """Returns the distance of the positions of neighbours in the result."""
    if align_corners:
        return (size - 1) / (output - 1) if output > 1 else 0.0
    return 1 / scale if scale else size / output


def _nearest(x: Tensor, sizes: Sequence[int], scales: Scales, offset: float) -> Tensor:
    for i, (output, scale) in enumerate(zip(sizes, scales, strict=True)):
        axis = x.ndim - len(sizes) + i
        size = x.shape[axis]
        step = _float32(_step(size, output, scale, False))
        positions = [min(int(_float32((j + offset) * step)), size - 1) for j in range(output)]
        x = ops.take(x, mt.Tensor(positions, dtype="int64"), axis)
    return x


def _float32(value: float) -> float:
    """Rounds a number as PyTorch does, so that positions on a boundary fall on the same side."""
    return float(mt.Tensor(value, dtype="float32").item())


def weighted(x: Tensor, axis: int, weights: Tensor) -> Tensor:
    """Returns sums of elements along an axis: each row of `weights` has those of an element of the result."""
    moved = ops.moveaxis(x, axis, -1)
    return ops.moveaxis(ops.matmul(moved, ops.matrix_transpose(weights)), -1, axis)


def _summed(x: Tensor, axis: int, rows: Sequence[dict[int, float]]) -> Tensor:
    """Returns sums of elements along an axis: the row of a result has the weight of each element."""
    matrix = [[row.get(j, 0.0) for j in range(x.shape[axis])] for row in rows]
    return weighted(x, axis, ops.astype(mt.Tensor(matrix, dtype="float64"), x.dtype))


def _linear_row(position: float, size: int) -> dict[int, float]:
    position = max(position, 0.0)
    low = min(int(position), size - 1)
    high = min(low + 1, size - 1)
    fraction = min(max(position - low, 0.0), 1.0)
    row = {low: 1 - fraction}
    row[high] = row.get(high, 0.0) + fraction
    return row


def _cubic_row(position: float, size: int) -> dict[int, float]:
    low = math.floor(position)
    row: dict[int, float] = {}
    for j in range(low - 1, low + 3):
        at = min(max(j, 0), size - 1)
        row[at] = row.get(at, 0.0) + _cubic(position - j, -0.75)
    return row


def _cubic(distance: float, a: float) -> float:
    """The convolution kernel of Keys (1981)."""
    x = abs(distance)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def _smooth_row(center: float, step: float, size: int, radius: float, kernel: Callable[[float], float]) -> Any:
    """A row of the weights of an antialiased image."""
    scale = max(step, 1.0)
    support = radius * scale
    low, high = max(int(center - support + 0.5), 0), min(int(center + support + 0.5), size)
    weights = {j: kernel((j - center + 0.5) / scale) for j in range(low, high)}
    total = sum(weights.values())
    return {j: w / total for j, w in weights.items()}


def _resampled(
    x: Tensor,
    sizes: Sequence[int],
    scales: Scales,
    align_corners: bool,
    row: Callable[[float, int], dict[int, float]],
) -> Tensor:
    for i, (output, scale) in enumerate(zip(sizes, scales, strict=True)):
        axis = x.ndim - len(sizes) + i
        size = x.shape[axis]
        step = _step(size, output, scale, align_corners)
        at = [j * step if align_corners else (j + 0.5) * step - 0.5 for j in range(output)]
        if (output, step) != (size, 1.0):
            x = _summed(x, axis, [row(position, size) for position in at])
    return x


def _smoothed(
    x: Tensor,
    sizes: Sequence[int],
    scales: Scales,
    align_corners: bool,
    radius: float,
    kernel: Callable[[float], float],
) -> Tensor:
    for i, (output, scale) in enumerate(zip(sizes, scales, strict=True)):
        axis = x.ndim - len(sizes) + i
        size = x.shape[axis]
        step = _step(size, output, scale, align_corners)
        rows = [_smooth_row((j + 0.5) * step, step, size, radius, kernel) for j in range(output)]
        x = _summed(x, axis, rows)
    return x


def _rules(
    name: str,
    rank: int,
    function: Callable[[Tensor, Sequence[int], Scales, bool], Tensor],
    in_steps: bool = True,
) -> None:
    """Adds the rules of a mode: with a list of scales, and with a scale for each axis."""

    def from_list(
        input: Tensor,  # noqa: A002 - the schema
        output_size: Sequence[int] | None = None,
        align_corners: bool = False,
        scale_factors: Sequence[float] | None = None,
    ) -> Tensor:
        return function(
            input, _output_sizes(input, rank, output_size, scale_factors), scale_factors or [None] * rank, align_corners
        )

    def from_scales(
        self: Tensor,
        output_size: Sequence[int],
        align_corners: bool = False,
        scales: float | None = None,
        scales_d: float | None = None,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Tensor:
        given = [scales] if rank == 1 else [scales_d, scales_h, scales_w][-rank:]
        return function(self, output_size, given, align_corners)

    rule(f"{name}.vec", in_steps=in_steps)(from_list)
    rule(name, in_steps=in_steps)(from_scales)


for _rank in (1, 2, 3):
    _rules(f"upsample_nearest{_rank}d", _rank, lambda x, sizes, scales, _: _nearest(x, sizes, scales, 0.0), False)
    _rules(
        f"_upsample_nearest_exact{_rank}d", _rank, lambda x, sizes, scales, _: _nearest(x, sizes, scales, 0.5), False
    )
for _name, _rank in (("upsample_linear1d", 1), ("upsample_bilinear2d", 2), ("upsample_trilinear3d", 3)):
    _rules(_name, _rank, lambda x, sizes, scales, align: _resampled(x, sizes, scales, align, _linear_row))
_rules("upsample_bicubic2d", 2, lambda x, sizes, scales, align: _resampled(x, sizes, scales, align, _cubic_row))
_rules(
    "_upsample_bilinear2d_aa",
    2,
    lambda x, sizes, scales, align: _smoothed(x, sizes, scales, align, 1, lambda d: max(1 - abs(d), 0.0)),
)
_rules(
    "_upsample_bicubic2d_aa",
    2,
    lambda x, sizes, scales, align: _smoothed(x, sizes, scales, align, 2, lambda d: _cubic(d, -0.5)),
)


_MODES = ("linear", "nearest", "cubic")
_PADDING = ("zeros", "border", "reflection")


@rule("grid_sampler_2d", "grid_sampler_3d", "grid_sampler", in_steps=True)
def _grid_sampler(
    input: Tensor,  # noqa: A002 - the schema
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Tensor:
    return sampled(input, grid, _MODES[interpolation_mode], _PADDING[padding_mode], align_corners)


def sampled(image: Tensor, grid: Tensor, mode: str, padding: str, align_corners: bool) -> Tensor:
    """Returns values of an image between its pixels. The last axis of `grid` has positions from -1 to 1, `x` first."""
    sizes = image.shape[2:]
    rank = len(sizes)
    taps: list[list[tuple[Tensor, Any]]] = []
    for axis, size in enumerate(sizes):
        at = ops.reshape(ops.slice(grid, -1, rank - 1 - axis, rank - axis), grid.shape[:-1])
        at = (at + 1.0) * (0.5 * (size - 1)) if align_corners else ((at + 1.0) * float(size) - 1.0) * 0.5
        if mode == "cubic":
            # Each of the four pixels is moved inside.
            first = ops.floor(at)
            neighbours = [_inside(first + float(k), size, padding, align_corners) for k in range(-1, 3)]
            taps.append(list(zip(neighbours, _cubic_weights(at - first), strict=True)))
            continue
        at = _inside(at, size, padding, align_corners)
        if mode == "nearest":
            taps.append([(ops.round(at), None)])
        else:
            first = ops.floor(at)
            taps.append([(first, 1.0 - (at - first)), (first + 1.0, at - first)])
    return _interpolated(image, taps)


def _interpolated(image: Tensor, taps: Sequence[Sequence[tuple[Tensor, Any]]]) -> Tensor:
    """Returns sums of pixels. For each axis, `taps` has positions, and their weights or None."""
    total = None
    for chosen in itertools.product(*taps):
        term = pixels(image, [at for at, _ in chosen])
        weights = [weight for _, weight in chosen if weight is not None]
        if weights:
            term = term * ops.expand_dims(functools.reduce(ops.multiply, weights), 1)
        total = term if total is None else total + term
    assert total is not None
    return total


def linear(image: Tensor, at: Sequence[Tensor]) -> Tensor:
    """Returns values of an image between its pixels, with zeros outside. `at` has the positions along each axis."""
    firsts = [ops.floor(t) for t in at]
    return _interpolated(image, [[(f, 1.0 - (t - f)), (f + 1.0, t - f)] for f, t in zip(firsts, at, strict=True)])


def _cubic_weights(fraction: Tensor) -> list[Tensor]:
    """Returns the weights of four neighbours: the kernel of Keys (1981)."""
    a = -0.75

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1.0

    def far(x: Tensor) -> Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(fraction + 1.0), near(fraction), near(1.0 - fraction), far(2.0 - fraction)]


def _inside(at: Tensor, size: int, padding: str, align_corners: bool) -> Tensor:
    """Moves positions into the image: to its border, or by reflections."""
    if padding == "zeros":
        return at
    if padding == "reflection":
        low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
        if span == 0:
            return ops.zeros_like(at)
        distance = ops.abs(at - low)
        flips = ops.floor(distance / span)
        rest = distance - flips * span
        at = ops.where(ops.eq(ops.remainder(flips, 2.0), 0.0), rest + low, (span + low) - rest)
    return ops.minimum(ops.maximum(at, 0.0), float(size - 1))


def pixels(image: Tensor, at: Sequence[Tensor]) -> Tensor:
    """Returns the pixels at positions along each axis; zeros outside."""
    count, channels, *sizes = image.shape
    shape = at[0].shape
    tests = [test for t, n in zip(at, sizes, strict=True) for test in (ops.ge(t, 0.0), ops.lt(t, float(n)))]
    is_inside = functools.reduce(ops.logical_and, tests)
    row = None
    for t, n in zip(at, sizes, strict=True):
        place = ops.astype(ops.where(is_inside, t, 0.0), "int64")
        row = place if row is None else row * n + place
    assert row is not None
    positions = ops.reshape(row, [count, 1, -1])
    flat = ops.reshape(image, [count, channels, math.prod(sizes)])
    found = ops.gather(flat, ops.expand(positions, [count, channels, positions.shape[-1]]), -1)
    found = ops.reshape(found, [count, channels, *shape[1:]])
    return ops.where(ops.expand_dims(is_inside, 1), found, 0.0)
