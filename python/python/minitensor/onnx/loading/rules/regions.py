"""Regions of images: pooling in boxes, and the choice of boxes."""

from __future__ import annotations

import math

import numpy as np

from .... import ops
from ....ir.aten.resampling import pixels
from ..error import OnnxError
from ..rule import rule
from ..values import Known, Tensor, tensor


def _bins(
    image: Tensor, boxes: Tensor, samples: tuple[int, int], output: tuple[int, int], mode: str, least: float
) -> Tensor:
    """Pools each box of an image. `image` has a row for each box, and the boxes are `x1, y1, x2, y2`."""
    count = image.shape[0]
    found: list[tuple[Tensor, Tensor, Tensor, Tensor, Tensor]] = []
    for axis, first in ((0, 1), (1, 0)):
        low, high = (ops.reshape(ops.slice(boxes, 1, first + k, first + k + 1), [count, 1]) for k in (0, 2))
        size = ops.maximum(high - low, least) if least else high - low
        n, bins, each = image.shape[2 + axis], output[axis], samples[axis]
        steps = (np.arange(bins)[:, None] + (np.arange(each)[None, :] + 0.5) / each).reshape(1, -1) / bins
        at = low + size * tensor(steps.astype("float32")).astype(boxes.dtype)
        # Within one pixel outside, the border is read; further out, zeros.
        is_inside = ops.logical_and(ops.ge(at, -1.0), ops.le(at, float(n)))
        at = ops.minimum(ops.maximum(at, 0.0), float(n - 1))
        lower = ops.floor(at)
        upper = ops.minimum(lower + 1.0, float(n - 1))
        found.append((lower, upper, at - lower, is_inside, at))
    (top, bottom, fy, in_y, _), (left, right, fx, in_x, _) = found
    shape = [count, output[0] * samples[0], output[1] * samples[1]]
    terms = []
    for y, wy in ((top, 1.0 - fy), (bottom, fy)):
        for x, wx in ((left, 1.0 - fx), (right, fx)):
            at_y, at_x = (ops.expand(t, shape) for t in (ops.expand_dims(y, 2), ops.expand_dims(x, 1)))
            weight = ops.expand_dims(wy, 2) * ops.expand_dims(wx, 1)
            terms.append(pixels(image, [at_y, at_x]) * ops.expand_dims(weight, 1))
    is_inside = ops.logical_and(ops.expand_dims(in_y, 2), ops.expand_dims(in_x, 1))
    axes = [3, 5]

    def split(t: Tensor) -> Tensor:
        masked = ops.where(ops.expand_dims(is_inside, 1), t, ops.zeros_like(t))
        return ops.reshape(masked, [*t.shape[:2], output[0], samples[0], output[1], samples[1]])

    if mode == "avg":
        return ops.mean(split(terms[0] + terms[1] + terms[2] + terms[3]), axes)
    # The largest of the weighted pixels, not of their sums.
    largest = terms[0]
    for term in terms[1:]:
        largest = ops.maximum(largest, term)
    return ops.amax(split(largest), axes)


@rule("RoiAlign", since=10)
def _roi_align_10(
    x: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    output = (output_height, output_width)
    return _aligned(x, rois, batch_indices, False, mode, output, sampling_ratio, spatial_scale)


def _aligned(
    x: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    is_half_pixel: bool,
    mode: str,
    output: tuple[int, int],
    sampling_ratio: int,
    spatial_scale: float,
) -> Tensor:
    boxes = rois * spatial_scale - (0.5 if is_half_pixel else 0.0)
    least = 0.0 if is_half_pixel else 1.0
    images = ops.take(x, ops.astype(batch_indices, "int64"), 0)
    if sampling_ratio > 0:
        return _bins(images, boxes, (sampling_ratio, sampling_ratio), output, mode, least)
    # The number of samples depends on the size of each box.
    sizes = boxes.detach().numpy().astype("float64")
    found = []
    for k, (x1, y1, x2, y2) in enumerate(sizes.tolist()):
        samples = tuple(
            max(math.ceil(max(span, least) / bins), 1) for span, bins in zip((y2 - y1, x2 - x1), output, strict=True)
        )
        part = [ops.slice(t, 0, k, k + 1) for t in (images, boxes)]
        found.append(_bins(part[0], part[1], (samples[0], samples[1]), output, mode, least))
    return ops.concat(found, 0)


@rule("RoiAlign", since=16)
def _roi_align_16(
    x: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    is_half_pixel = coordinate_transformation_mode == "half_pixel"
    output = (output_height, output_width)
    return _aligned(x, rois, batch_indices, is_half_pixel, mode, output, sampling_ratio, spatial_scale)


@rule("MaxRoiPool")
def _max_roi_pool(x: Tensor, rois: Known, *, pooled_shape: list[int], spatial_scale: float = 1.0) -> Tensor:
    found = []
    for batch, *box in rois.tolist():
        # Half a pixel is rounded away from zero.
        x1, y1, x2, y2 = (math.floor(v * spatial_scale + 0.5) for v in box)
        image = ops.slice(x, 0, int(batch), int(batch) + 1)
        cells = []
        for i in range(pooled_shape[0]):
            for j in range(pooled_shape[1]):
                part = image
                for axis, k, low, high, bins in ((2, i, y1, y2, pooled_shape[0]), (3, j, x1, x2, pooled_shape[1])):
                    step = max(high - low + 1, 1) / bins
                    start, end = low + math.floor(k * step), low + math.ceil((k + 1) * step)
                    n = x.shape[axis]
                    part = ops.slice(part, axis, min(max(start, 0), n), min(max(end, 0), n))
                # A cell without pixels is 0.
                is_empty = 0 in part.shape
                cells.append(ops.zeros_like(image[:, :, 0, 0]) if is_empty else ops.amax(part, [2, 3]))
        found.append(ops.reshape(ops.stack(cells, -1), [1, x.shape[1], *pooled_shape]))
    if not found:
        raise OnnxError("there are no regions")
    return ops.concat(found, 0)


@rule("NonMaxSuppression", since=10)
def _non_max_suppression(
    boxes: Known,
    scores: Known,
    max_output_boxes_per_class: Known | None = None,
    iou_threshold: Known | None = None,
    score_threshold: Known | None = None,
    *,
    center_point_box: int = 0,
) -> Tensor:
    limit = 0 if max_output_boxes_per_class is None else int(max_output_boxes_per_class.item())
    overlap = 0.0 if iou_threshold is None else float(iou_threshold.item())
    least = None if score_threshold is None else float(score_threshold.item())
    if center_point_box:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        corners = np.concatenate([middle - half, middle + half], -1)
    else:
        # The corners of a diagonal may be in any order.
        first, second = boxes[..., :2], boxes[..., 2:]
        corners = np.concatenate([np.minimum(first, second), np.maximum(first, second)], -1)
    found: list[tuple[int, int, int]] = []
    for batch, classes in enumerate(scores):
        for number, row in enumerate(classes):
            order = [int(k) for k in np.argsort(-row, kind="stable") if least is None or row[k] > least]
            kept: list[int] = []
            for k in order:
                if len(kept) >= limit:
                    break
                if not kept or (_overlaps(corners[batch, k], corners[batch, kept]) <= overlap).all():
                    kept.append(k)
            found += [(batch, number, k) for k in kept]
    return tensor(np.array(found, dtype="int64").reshape(-1, 3))


def _overlaps(box: Known, others: Known) -> Known:
    """Returns the area that a box shares with others, relative to that of both."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    shared = np.prod(np.maximum(high - low, 0), 1)
    areas = np.prod(box[2:] - box[:2]) + np.prod(others[:, 2:] - others[:, :2], 1)
    union = areas - shared
    found: Known = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return found
