"""`mt.lazy`."""

from __future__ import annotations

from contextlib import ContextDecorator

from .._minitensor import _set_lazy


class lazy(ContextDecorator):
    """Postpones the calls of this thread until their results are read, in a `with` block or a decorated function.

    >>> import minitensor as mt
    >>> x = mt.Tensor([1.0, 2.0])
    >>> with mt.lazy():
    ...     y = (x * 2 + 1).sqrt()
    >>> y.shape
    (2,)
    >>> y
    tensor([1.7321, 2.2361])

    A read computes all postponed calls: printing, `item()`, `numpy()`, or an op outside of lazy mode. They run as a
    graph, as with `mt.jit`. Results that are no longer in use are not computed. Leaving the block computes nothing.
    """

    def __init__(self) -> None:
        self._before: list[bool] = []

    def _recreate_cm(self) -> lazy:
        # A decorated function may run on several threads at once, so each call needs its own state.
        return lazy()

    def __enter__(self) -> None:
        self._before.append(_set_lazy(True))

    def __exit__(self, *_: object) -> None:
        _set_lazy(self._before.pop())
