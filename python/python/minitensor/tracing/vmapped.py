"""`vmap`, and the function that it returns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Generic, Literal, ParamSpec, TypeVar

from .. import ops
from .._minitensor import Tensor, _batch_cancel, _batch_finish, _batch_start
from . import tree, watch

P = ParamSpec("P")
R = TypeVar("R")

#: An axis for all tensors of a value, or containers of axes, as the value has them.
Axes = int | None | tuple["Axes", ...] | list["Axes"] | dict[Any, "Axes"]
Randomness = Literal["error", "different", "same"]


class Vmapped(watch.Watched, Generic[P, R]):
    """A function under `mt.vmap`."""

    def __init__(self, function: Callable[P, R], in_axes: Axes, out_axes: Axes, randomness: Randomness) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._in_axes = in_axes
        self._out_axes = out_axes
        self._randomness = randomness

    def watched(self) -> dict[str, Any]:
        return {
            "function": self._function,
            "in_axes": repr(self._in_axes),
            "out_axes": repr(self._out_axes),
            "randomness": self._randomness,
        }

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        bound: Any = self
        return self if instance is None else functools.partial(bound, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        # The axes of the arguments are a tuple, as the arguments are.
        axes = tuple(self._in_axes) if isinstance(self._in_axes, list) else self._in_axes
        if isinstance(axes, tuple) and len(axes) != len(args):
            raise ValueError(f"mt.vmap: in_axes has {len(axes)} entries, but the function got {len(args)} arguments")
        found = [
            part
            for i, arg in enumerate(args)
            for part in _with_axes(axes[i] if isinstance(axes, tuple) else axes, arg, f"argument {i}", "in_axes")
        ]
        sizes = {place: _size(t, axis, place) for t, axis, place in found if axis is not None}
        if not sizes:
            raise ValueError(
                "mt.vmap: no argument has an axis of examples; pass a tensor by position, with an axis in in_axes"
            )
        (first, size), *others = sizes.items()
        for place, other in others:
            if other != size:
                raise ValueError(
                    f"mt.vmap: the axes of the examples must have the same size, but {first} has {size} and "
                    f"{place} {other}"
                )
        batched = tuple(ops.moveaxis(t, axis, 0) if axis else t for t, axis, _ in found if axis is not None)
        if any(t.device == "meta" for t in batched):
            raise ValueError("mt.vmap: an argument is on the device 'meta', where tensors have no elements")
        number, examples = _batch_start(batched, size)
        try:
            each = iter(examples)
            inner = tree.replaced(args, iter([t if axis is None else next(each) for t, axis, _ in found]))
            result = self._function(*inner, **kwargs)
            outputs: list[Tensor] = []
            rebuild = tree.rebuilder(result, outputs)
            ends = [axis for _, axis, _ in _with_axes(self._out_axes, result, "the result", "out_axes")]
            if None in ends:
                raise ValueError("mt.vmap: out_axes must be integers: each result has an axis of examples")
            results = _batch_finish(tuple(outputs), self._randomness)
        finally:
            _batch_cancel(number)
        for t, axis in zip(results, ends, strict=True):
            _size(t, axis or 0, "the result")
        moved = (ops.moveaxis(t, 0, axis) if axis else t for t, axis in zip(results, ends, strict=True))
        return rebuild(moved)  # type: ignore[no-any-return]


def _size(tensor: Tensor, axis: int, place: str) -> int:
    rank = len(tensor.shape)
    if not -rank <= axis < rank:
        raise ValueError(f"mt.vmap: {place} has no axis {axis}, its shape is {tensor.shape}")
    return tensor.shape[axis]


def _with_axes(axes: Axes, value: Any, place: str, name: str) -> Iterator[tuple[Tensor, int | None, str]]:
    """Yields the tensors in a value, in the order of `tree.flatten`, with their axes and places."""
    items = _items(value)
    if isinstance(axes, (tuple, list, dict)):
        own = dict(_items(axes) or ())
        if items is None or own.keys() != {key for key, _ in items}:
            kind = type(value).__name__
            raise ValueError(f"mt.vmap: {name} for {place} is {axes!r}, which does not fit this {kind}")
        for key, item in items:
            yield from _with_axes(own[key], item, f"{place}[{key!r}]", name)
        return
    if axes is not None and type(axes) is not int:
        kind = type(axes).__name__
        raise TypeError(f"mt.vmap: {name} contains a {kind}; expected integers, None, and containers of them")
    if items is not None:
        for key, item in items:
            yield from _with_axes(axes, item, f"{place}[{key!r}]", name)
    elif isinstance(value, Tensor):
        yield value, axes, place
    elif axes is not None and value is not None and name == "in_axes":
        what = "convert it with mt.asarray()" if hasattr(value, "__array__") else "pass a tensor, or None in in_axes"
        raise TypeError(f"mt.vmap: {place} is of type {type(value).__name__}, expected a tensor; {what}")


def _items(value: Any) -> list[tuple[Any, Any]] | None:
    """The keys and items of a container that `tree` knows."""
    if type(value) is dict:
        return list(value.items())
    if type(value) in (tuple, list) or isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(enumerate(value))
    return None


def vmap(
    function: Callable[P, R], in_axes: Axes = 0, out_axes: Axes = 0, *, randomness: Randomness = "error"
) -> Vmapped[P, R]:
    """Returns a function of a batch, from a function of one example.

    `in_axes` are the axes of the examples: an integer for all positional arguments, or a tuple with an entry for each:
    an integer, `None` for an argument that all examples share, or a container of these if the argument is a list, tuple
    or dict. Arguments passed by keyword are shared. `out_axes` are the axes of the examples in the results.

    >>> import minitensor as mt
    >>> distance = mt.vmap(lambda x, y: ((x - y) ** 2).sum(), in_axes=(0, None))
    >>> distance(mt.Tensor([[1.0, 2.0], [3.0, 4.0]]), mt.Tensor([1.0, 2.0]))
    tensor([0., 8.])

    The function runs once, with one example. The calls that it makes are then made for all examples together. It can
    contain gradients, also with respect to shared tensors, so these are computed for each example:

    >>> w = mt.ones(2, requires_grad=True)
    >>> mt.vmap(lambda x: mt.grad((x * w).sum(), w)[0])(mt.Tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[1., 2.],
            [3., 4.]])

    `randomness` is for a function that draws random numbers: "different" or "same" numbers for each example, or
    "error".

    Raises RuntimeError if the function reads elements of an example, as by `if` or `item()`, or changes an argument in
    place.
    """
    if not callable(function):
        raise TypeError(f"mt.vmap takes a function, got {type(function).__name__}")
    if randomness not in ("error", "different", "same"):
        raise ValueError(f'mt.vmap: randomness must be "error", "different" or "same", got {randomness!r}')
    return Vmapped(function, in_axes, out_axes, randomness)
