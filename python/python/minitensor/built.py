"""Ops that were built: they can be registered, taken away, and registered again."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from . import _absent, _minitensor

__all__ = ["BuiltOp", "all_or_none"]

_Function = Callable[..., Any]
#: The op behind each function that a registration gave.
_BEHIND: weakref.WeakKeyDictionary[_Function, BuiltOp] = weakref.WeakKeyDictionary()
#: Where ops are noted that are registered on this thread, if anybody wants to know.
_NOTED: ContextVar[list[BuiltOp] | None] = ContextVar("_NOTED", default=None)


class BuiltOp:
    """An op that was built by `CustomOpBuilder`, and not necessarily registered."""

    def __init__(self, built: _minitensor.BuiltOp) -> None:
        self._built = built
        self._function: Callable[[], _Function | None] = lambda: None
        #: The plugin that it belongs to.
        self.plugin: str | None = None

    @classmethod
    def of(cls, function: object) -> BuiltOp | None:
        """The op behind a function that `register` or `@mt.custom_op` gave."""
        try:
            return _BEHIND.get(function)  # type: ignore[call-overload,no-any-return]
        except TypeError:
            return None

    @classmethod
    def owner(cls, name: str) -> str | None:
        """The plugin to which the op that has this name now belongs."""
        op = cls.of(_absent.function(name))
        return None if op is None else op.plugin

    @property
    def name(self) -> str:
        """The name it is registered under."""
        return self._built.name

    @property
    def is_registered(self) -> bool:
        """Whether it is this very op that has its name."""
        function = self._function()
        return function is not None and _absent.function(self.name) is function

    def register(self) -> _Function:
        """Puts it into the registry, and gives its function `mt.ops.<name>`."""
        function = self._built.register()
        self._function = weakref.ref(function)
        _BEHIND[function] = self
        _absent.forget(self.name)
        noted = _NOTED.get()
        if noted is not None:
            noted.append(self)
        return function

    def unregister(self) -> None:
        """Takes it away if it is there; tensors and graphs made with it stay valid."""
        self.plugin = None
        if self.is_registered:
            _minitensor.unregister_custom_op_py(self.name)

    def __repr__(self) -> str:
        return f"BuiltOp('{self.name}')"


@contextmanager
def all_or_none() -> Iterator[list[BuiltOp]]:
    """Notes the ops that are registered inside, and takes them away again if an exception leaves the block."""
    noted: list[BuiltOp] = []
    token = _NOTED.set(noted)
    try:
        yield noted
    except BaseException:
        for op in reversed(noted):
            op.unregister()
        raise
    finally:
        _NOTED.reset(token)
