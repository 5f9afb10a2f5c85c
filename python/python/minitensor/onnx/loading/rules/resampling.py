"""Images of another size, and values between pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .... import _minitensor as mt
from .... import ops
from ....ir.aten.promotion import cast
from ....ir.aten.resampling import linear, sampled, weighted
from ..error import OnnxError
from ..rule import rule
from ..values import Known, Tensor, tensor


@dataclass(frozen=True)
class _Axis:
    """How an axis is resized."""

    axis: int
    size: int
    #: The size of the result, and the exact one that it was rounded from.
    output: int
    exact: float
    scale: float
    #: The part of the axis that the result shows.
    start: float = 0.0
    end: float = 1.0

    def positions(self, mode: str) -> Known:
        """Returns where in the axis each element of the result is."""
        found = np.broadcast_to(_POSITIONS[mode](self, np.arange(self.output, dtype="float64")), self.output)
        # In 32 bits, a position between two elements falls on the same side as in other libraries.
        return found.astype("float32").astype("float64")


#: The positions of elements, given the axis and the elements.
_POSITIONS: dict[str, Callable[[_Axis, Known], Any]] = {
    "half_pixel": lambda a, x: (x + 0.5) / a.scale - 0.5,
    "half_pixel_symmetric": lambda a, x: a.size / 2 * (1 - a.output / a.exact) + (x + 0.5) / a.scale - 0.5,
    "pytorch_half_pixel": lambda a, x: (x + 0.5) / a.scale - 0.5 if a.output > 1 else -0.5,
    "align_corners": lambda a, x: x * (a.size - 1) / (a.exact - 1) if a.exact != 1 else 0.0,
    "asymmetric": lambda a, x: x / a.scale,
    "tf_half_pixel_for_nn": lambda a, x: (x + 0.5) / a.scale,
    "tf_crop_and_resize": lambda a, x: (
        (a.size - 1) * (a.start + x * (a.end - a.start) / (a.output - 1) if a.output > 1 else 0.5 * (a.start + a.end))
    ),
}
_NEAREST: dict[str, Callable[[Known], Known]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _weights(positions: Known, axis: _Axis, mode: str, a: float, is_smooth: bool, excludes: bool) -> Known:
    """Returns a row for each element of the result: the weights of the elements of the axis."""
    # A smooth filter of a smaller result reads more elements.
    width = min(axis.scale, 1.0) if is_smooth else 1.0
    radius = 1 if mode == "linear" else 2
    reach = -math.floor(-radius / width) - 1
    at = np.floor(positions)[:, None] + np.arange(-reach, reach + 2)
    distance = np.abs(at - positions[:, None]) * width
    weights = np.maximum(1 - distance, 0) if mode == "linear" else _cubic(distance, a)
    if excludes:
        weights = np.where((at >= 0) & (at < axis.size), weights, 0)
    if excludes or is_smooth:
        weights = weights / weights.sum(1, keepdims=True)
    found = np.zeros((len(positions), axis.size))
    columns = np.clip(at, 0, axis.size - 1).astype("int64")
    np.add.at(found, (np.arange(len(positions))[:, None], columns), weights)
    return found


def _cubic(x: Known, a: float) -> Known:
    """The convolution kernel of Keys (1981), for distances."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _resized(
    x: Tensor,
    axes: Sequence[_Axis],
    mode: str,
    coordinates: str,
    nearest_mode: str,
    a: float,
    is_smooth: bool,
    excludes: bool,
    extrapolation: float,
) -> Tensor:
    found = x if mode == "nearest" or x.dtype.is_floating_point else ops.astype(x, "float32")
    outside = np.zeros((), dtype=bool)
    for axis in axes:
        positions = axis.positions(coordinates)
        if coordinates == "tf_crop_and_resize":
            is_outside = (positions < 0) | (positions > axis.size - 1)
            outside = outside | is_outside.reshape([-1 if k == axis.axis else 1 for k in range(x.ndim)])
        if np.array_equal(positions, np.arange(axis.size)):
            continue
        if mode == "nearest":
            at = np.clip(_NEAREST[nearest_mode](positions), 0, axis.size - 1).astype("int64")
            found = ops.take(found, tensor(at), axis.axis)
        else:
            weights = tensor(_weights(positions, axis, mode, a, is_smooth, excludes))
            found = weighted(found, axis.axis, ops.astype(weights, found.dtype))
    found = cast(found, x.dtype.name)
    return ops.where(tensor(outside), cast(extrapolation, x.dtype.name), found) if outside.any() else found


def _axes(
    x: Tensor,
    chosen: Sequence[int],
    scales: Sequence[float] | None,
    sizes: Sequence[int] | None,
    roi: Sequence[float] | None,
    policy: str = "stretch",
) -> list[_Axis]:
    if (scales is None) == (sizes is None):
        raise OnnxError("expected either scales or sizes")
    found = []
    count = len(chosen)
    if sizes is not None and policy != "stretch":
        ratios = [size / x.shape[axis] for size, axis in zip(sizes, chosen, strict=True)]
        scales = [min(ratios) if policy == "not_larger" else max(ratios)] * count
        sizes = [math.floor(scale * x.shape[axis] + 0.5) for scale, axis in zip(scales, chosen, strict=True)]
    for k, axis in enumerate(chosen):
        n = x.shape[axis]
        start, end = (roi[k], roi[k + count]) if roi else (0.0, 1.0)
        scale = scales[k] if scales is not None else (sizes[k] / n if sizes is not None and n else 1.0)
        output = sizes[k] if sizes is not None else math.floor(n * (end - start) * scale)
        exact = scale * n if scales is not None else float(output)
        found.append(_Axis(axis, n, output, exact, scale, start, end))
    return found


def _list(x: Known | None) -> list[float] | None:
    return None if x is None or not x.size else x.tolist()


@rule("Resize", since=11)
def _resize(
    x: Tensor,
    roi: Known | None = None,
    scales: Known | None = None,
    sizes: Known | None = None,
    *,
    antialias: int = 0,
    axes: list[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:
    chosen = list(range(x.ndim)) if axes is None else [axis % x.ndim for axis in axes]
    is_cropped = coordinate_transformation_mode == "tf_crop_and_resize"
    whole = None if sizes is None or not sizes.size else [int(n) for n in sizes]
    found = _axes(x, chosen, _list(scales), whole, _list(roi) if is_cropped else None, keep_aspect_ratio_policy)
    return _resized(
        x,
        found,
        mode,
        coordinate_transformation_mode,
        nearest_mode,
        cubic_coeff_a,
        bool(antialias),
        bool(exclude_outside),
        extrapolation_value,
    )


@rule("Resize", since=10)
@rule("Upsample", since=9)
def _resize_10(x: Tensor, scales: Known, *, mode: str = "nearest") -> Tensor:
    return _upsampled(x, scales.tolist(), mode)


@rule("Upsample", since=7)
def _upsample_7(x: Tensor, *, scales: list[float], mode: str = "nearest") -> Tensor:
    return _upsampled(x, scales, mode)


def _upsampled(x: Tensor, scales: Sequence[float], mode: str) -> Tensor:
    axes = _axes(x, range(x.ndim), scales, None, None)
    return _resized(x, axes, mode, "asymmetric", "floor", -0.75, False, False, 0.0)


@rule("GridSample", since=20)
@rule("GridSample", since=16)
def _grid_sample(
    x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Tensor:
    # Before opset 20, the modes were bilinear and bicubic.
    kind = mode.removeprefix("bi")
    if not x.size or not grid.size:
        return mt.zeros((*x.shape[:2], *grid.shape[1:-1]), dtype=x.dtype)
    return sampled(x, grid, kind, padding_mode, bool(align_corners))


@rule("DeformConv")
def _deform_conv(
    x: Tensor,
    weight: Tensor,
    offset: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    offset_group: int = 1,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    batch, channels = x.shape[:2]
    kernel, out = list(weight.shape[2:]), list(offset.shape[2:])
    rank, taps, positions = len(kernel), math.prod(kernel), math.prod(out)
    s, d, p = strides or [1] * rank, dilations or [1] * rank, pads or [0] * 2 * rank
    # Where each element of each window is, for each group of channels.
    moves = ops.reshape(offset, [batch * offset_group, taps, rank, positions])
    at = []
    for axis in range(rank):
        along = [-1 if k == axis else 1 for k in range(rank)]
        first = np.broadcast_to((np.arange(out[axis]) * s[axis] - p[axis]).reshape(along), out).reshape(1, -1)
        inner = np.broadcast_to((np.arange(kernel[axis]) * d[axis]).reshape(along), kernel).reshape(-1, 1)
        move = ops.reshape(ops.slice(moves, 2, axis, axis + 1), [batch * offset_group, taps, positions])
        at.append(move + tensor((first + inner).astype("float32")).astype(x.dtype))
    image = ops.reshape(x, [batch * offset_group, channels // offset_group, *x.shape[2:]])
    columns = linear(image, at)
    if mask is not None:
        columns = columns * ops.reshape(mask, [batch * offset_group, 1, taps, positions])
    rows = ops.reshape(columns, [batch, group, channels // group * taps, positions])
    matrices = ops.reshape(weight, [group, weight.shape[0] // group, channels // group * taps])
    found = ops.reshape(ops.matmul(matrices, rows), [batch, weight.shape[0], *out])
    return found if bias is None else found + ops.reshape(bias, [-1, *[1] * rank])
