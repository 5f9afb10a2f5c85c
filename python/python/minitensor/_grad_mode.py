"""Whether operations are recorded for gradients: context managers that are decorators, too."""

from contextlib import ContextDecorator

from ._minitensor import _set_grad_enabled


class set_grad_enabled(ContextDecorator):
    """Turns recording on or off on this thread, within `with` or a decorated function."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._before: list[bool] = []

    def _recreate_cm(self) -> "set_grad_enabled":
        # As a decorator it is used by many calls at once, on many threads.
        return set_grad_enabled(self._enabled)

    def __enter__(self) -> None:
        self._before.append(_set_grad_enabled(self._enabled))

    def __exit__(self, *_: object) -> None:
        _set_grad_enabled(self._before.pop())


class no_grad(set_grad_enabled):
    """Nothing is recorded inside.

    >>> import minitensor as mt
    >>> x = mt.Tensor([1.0], requires_grad=True)
    >>> with mt.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(set_grad_enabled):
    """Operations are recorded inside, whatever holds outside."""

    def __init__(self) -> None:
        super().__init__(True)
