"""Switches for gradient recording. Each is a context manager and a decorator."""

from contextlib import ContextDecorator

from ._minitensor import _set_grad_enabled


class set_grad_enabled(ContextDecorator):
    """Enables or disables gradient recording on this thread, in a `with` block or a decorated function."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._before: list[bool] = []

    def _recreate_cm(self) -> "set_grad_enabled":
        # A decorated function may run on several threads at once, so each call needs its own state.
        return set_grad_enabled(self._enabled)

    def __enter__(self) -> None:
        self._before.append(_set_grad_enabled(self._enabled))

    def __exit__(self, *_: object) -> None:
        _set_grad_enabled(self._before.pop())


class no_grad(set_grad_enabled):
    """Disables gradient recording.

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
    """Enables gradient recording, for example inside `no_grad`."""

    def __init__(self) -> None:
        super().__init__(True)
