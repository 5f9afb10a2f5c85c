"""What conditions read of the inputs: their ranks, sizes and lengths."""

from __future__ import annotations

from collections.abc import Callable

from .condition import Arguments

__all__ = ["channels", "chosen", "image_axes", "length_of", "rank", "size_of"]


def rank(arguments: Arguments) -> int:
    """The number of axes of the first input."""
    return arguments.rank()


def chosen(arguments: Arguments) -> int:
    """The number of the axes that a call names, or else of all."""
    given = arguments["axes"]
    return arguments.rank() if given is None else len(given) if isinstance(given, list) else 1


def image_axes(arguments: Arguments) -> int:
    """The number of axes of an image."""
    return max(arguments.rank() - 2, 0)


def size_of(position: int, axis: int) -> Callable[[Arguments], int | None]:
    """A size of an input; None if the input has no such axis."""

    def size(arguments: Arguments) -> int | None:
        shape = arguments.shape(position)
        return shape[axis] if -len(shape) <= axis < len(shape) else None

    return size


def length_of(name: str) -> Callable[[Arguments], int]:
    """The length of a list, or of a tensor with one axis."""

    def count(arguments: Arguments) -> int:
        value = arguments[name]
        return len(value) if isinstance(value, list) else 1

    return count


def channels(arguments: Arguments) -> int | None:
    """The number of channels of an image."""
    return size_of(0, 1)(arguments)
