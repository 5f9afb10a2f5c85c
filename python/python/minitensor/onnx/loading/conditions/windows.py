"""Convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence

from .condition import Arguments, Condition, at_least, divides, equals, meets, one_of, ranks, same_length
from .sizes import channels, image_axes, length_of, size_of

__all__ = ["CONDITIONS"]

_IMAGE = "axis of the image"
_AUTO_PAD = one_of("auto_pad", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_POSITIVE = [at_least(name, 1) for name in ("kernel_shape", "strides", "dilations")]
_PER_AXIS = [same_length(name, image_axes, _IMAGE) for name in ("kernel_shape", "strides", "dilations")]
_PADS = same_length("pads", image_axes, _IMAGE, 2)
_WINDOWS = [*_POSITIVE, *_PER_AXIS, at_least("pads", 0), _PADS]


def _less_than_kernels(value: list[int], arguments: Arguments) -> str | None:
    kernel = arguments["kernel_shape"]
    dilations = arguments["dilations"] or [1] * len(kernel)
    if len(value) != 2 * len(kernel) or len(dilations) != len(kernel):
        return None
    spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    is_right = all(n < spans[k % len(spans)] for k, n in enumerate(value))
    return None if is_right else f"numbers less than the extents {spans} of the windows"


_POOL = [
    ranks("x", 0, 3, 5, "a batch, channels, and 1 to 3 axes of images"),
    *_WINDOWS,
    _AUTO_PAD,
    meets("pads", _less_than_kernels, is_of_run=False),
]


def _kernels(position: int, weight: str) -> list[Condition]:
    """The conditions of a convolution whose weight is the input at this position."""

    def kernel(arguments: Arguments) -> list[int]:
        return list(arguments.shape(position)[2:])

    def channels(value: object, arguments: Arguments) -> str | None:
        x, w = arguments.shape(), arguments.shape(position)
        if len(w) != len(x):
            return f"{len(x)} axes, as the input has"
        group = arguments["group"]
        wanted = x[1] // group
        return (
            None
            if w[1] == wanted and x[1] % group == 0
            else f"{x[1]} / {group} channels, as the input in {group} groups"
        )

    return [
        ranks("x", 0, 3, 5, "a batch, channels, and 1 to 3 axes of images"),
        at_least("group", 1),
        meets(weight, channels),
        equals("kernel_shape", kernel, "the sizes of the weight"),
        divides("group", size_of(position, 0), "the number of kernels of the weight"),
    ]


def _transposed_channels(value: object, arguments: Arguments) -> str | None:
    x, w = arguments.shape(), arguments.shape(1)
    if len(w) != len(x):
        return f"{len(x)} axes, as the input has"
    return None if w[0] == x[1] else f"{x[1]} kernels, one for each channel of the input"


def _output_shape(value: list[int], arguments: Arguments) -> str | None:
    image = image_axes(arguments)
    return None if len(value) in (image, image + 2) else f"{image} numbers, one for each {_IMAGE}"


def _windowed(weight: str, position: int, *others: Condition) -> tuple[Condition, ...]:
    return (*_kernels(position, weight), *_WINDOWS, *others)


#: The conditions by the names of operators.
CONDITIONS: dict[str, Sequence[Condition]] = {
    "AveragePool": _POOL,
    "Col2Im": (
        *(at_least(name, 1) for name in ("strides", "dilations")),
        at_least("pads", 0),
        at_least("image_shape", 1, True),
        at_least("block_shape", 1, True),
        same_length("image_shape", length_of("block_shape"), "axis of a block"),
        *(same_length(name, length_of("block_shape"), "axis of a block") for name in ("strides", "dilations")),
        same_length("pads", length_of("block_shape"), "axis of a block", 2),
    ),
    "Conv": _windowed("weight", 1, _AUTO_PAD),
    "ConvInteger": _windowed("w", 1, _AUTO_PAD),
    "ConvTranspose": (
        ranks("x", 0, 3, 5, "a batch, channels, and 1 to 3 axes of images"),
        *_POSITIVE,
        *_PER_AXIS,
        _PADS,
        _AUTO_PAD,
        at_least("group", 1),
        at_least("output_padding", 0),
        same_length("output_padding", image_axes, _IMAGE),
        at_least("output_shape", 1),
        meets("output_shape", _output_shape),
        meets("weight", _transposed_channels),
        equals("kernel_shape", lambda arguments: list(arguments.shape(1)[2:]), "the sizes of the weight"),
        divides("group", channels, "the number of channels of the input"),
    ),
    "DeformConv": _windowed(
        "weight", 1, at_least("offset_group", 1), divides("offset_group", channels, "its channels")
    ),
    "LpPool": (*_POOL, at_least("p", 1)),
    "MaxPool": (*_POOL, one_of("storage_order", 0, 1)),
    "MaxUnpool": (
        ranks("x", 0, 3, 64, "a batch, channels and an image"),
        *(condition for condition in _WINDOWS if condition.name != "dilations"),
    ),
    "QLinearConv": _windowed("w", 3, _AUTO_PAD),
}
