"""Images of other sizes, and parts of images."""

from __future__ import annotations

from collections.abc import Sequence

from .condition import Arguments, Condition, at_least, axes, meets, one_of, ranks, same_length
from .sizes import channels, chosen, image_axes, rank

__all__ = ["CONDITIONS"]


def _volume(value: int, arguments: Arguments) -> str | None:
    count, volume = channels(arguments), value ** image_axes(arguments)
    return None if count is None or count % volume == 0 else f"a block whose volume divides the {count} channels"


def _tiles(value: int, arguments: Arguments) -> str | None:
    image = arguments.shape()[2:]
    return None if all(n % value == 0 for n in image) else f"a divisor of each size of the image {list(image)}"


_BLOCKS = (
    at_least("blocksize", 1),
    one_of("mode", "DCR", "CRD"),
    ranks("x", 0, 3, 64, "a batch, channels and an image"),
)
_SCALES = (same_length("scales", rank, "axis of the input"), one_of("mode", "nearest", "linear", "cubic"))


def _scales(value: list[float], arguments: Arguments) -> str | None:
    count = chosen(arguments)
    is_right = not value or (len(value) == count and all(n > 0 for n in value))
    return None if is_right else f"{count} numbers greater than 0, one for each axis"


def _sizes(value: list[int], arguments: Arguments) -> str | None:
    count = chosen(arguments)
    is_right = not value or (len(value) == count and all(n >= 0 for n in value))
    return None if is_right else f"{count} numbers of at least 0, one for each axis"


_COORDINATES = (
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"),
    *("tf_half_pixel_for_nn", "tf_crop_and_resize"),
)

#: The conditions by the names of operators.
CONDITIONS: dict[str, Sequence[Condition]] = {
    "DepthToSpace": (*_BLOCKS, meets("blocksize", _volume)),
    "GridSample": (
        one_of("mode", "linear", "nearest", "cubic", "bilinear", "bicubic"),
        one_of("padding_mode", "zeros", "border", "reflection"),
    ),
    "MaxRoiPool": (
        at_least("pooled_shape", 1),
        same_length("pooled_shape", lambda _: 2, "axis of an image"),
        ranks("x", 0, 4, 4, "a batch of images: 4 axes"),
    ),
    "Resize": (
        axes(),
        meets("scales", _scales),
        meets("sizes", _sizes),
        one_of("mode", "nearest", "linear", "cubic"),
        one_of("nearest_mode", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        one_of("keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller"),
        one_of("coordinate_transformation_mode", *_COORDINATES),
    ),
    "RoiAlign": (
        at_least("output_height", 1),
        at_least("output_width", 1),
        at_least("sampling_ratio", 0),
        one_of("mode", "avg", "max"),
        one_of("coordinate_transformation_mode", "half_pixel", "output_half_pixel"),
        ranks("x", 0, 4, 4, "a batch of images: 4 axes"),
    ),
    "SpaceToDepth": (*_BLOCKS, meets("blocksize", _tiles)),
    "Upsample": _SCALES,
}
