"""Ops that aren't there: those of plugins that were unloaded, and those of plugins that are yet to be discovered."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _minitensor

if TYPE_CHECKING:
    from ._minitensor import Tensor, TensorLike

__all__ = ["execute_custom_op", "execute_custom_op_py", "forget", "function", "remember"]

#: The plugin that each op went with.
_WENT_WITH: dict[str, str] = {}
_LOCK = threading.Lock()


def _module(op: str) -> Any:
    """The module in which an op's function is found; None if it has never been made."""
    namespaces = op.split("::")[:-1]
    return sys.modules.get(".".join(["minitensor.ops", *namespaces]))


def function(op: str) -> Any:
    """The function of the op that has this name now; None if there is none."""
    return getattr(_module(op), "__dict__", {}).get(op.rpartition("::")[2])


def _explanation(op: str) -> str:
    return f"op '{op}' came with plugin '{_WENT_WITH[op]}', which was unloaded; load the plugin again to use it"


def remember(op: str, plugin: str) -> None:
    """From now on, who looks for the op is told that it went with a plugin."""
    module = _module(op)
    namespace = op.rpartition("::")[0]

    def absent(name: str) -> Any:
        op = f"{namespace}::{name}" if namespace else name
        text = f"module '{module.__name__}' has no attribute '{name}'"
        raise AttributeError(_explanation(op) if op in _WENT_WITH else text, name=name, obj=module)

    with _LOCK:
        _WENT_WITH[op] = plugin
        # A module with a `__getattr__` is slower at all its attributes: it has one while there is something to tell.
        module.__getattr__ = absent


def forget(op: str) -> None:
    """The op is there again."""
    with _LOCK:
        if _WENT_WITH.pop(op, None) is None:
            return
        module = _module(op)
        if not any(_module(other) is module for other in _WENT_WITH):
            del module.__getattr__


def execute_custom_op(name: str, inputs: Sequence[TensorLike], **attrs: object) -> Any:
    """Calls an op by name on a list of tensors, with attributes as keywords.

    >>> import minitensor as mt
    >>> mt.execute_custom_op("clamp", [mt.Tensor([1.0, 3.0])], hi=2.0)
    tensor([1., 2.])
    """
    try:
        return _minitensor.execute_custom_op(name, inputs, **attrs)
    except ValueError:
        if _minitensor.is_custom_op_registered_py(name):
            raise
        if name in _WENT_WITH:
            raise ValueError(_explanation(name)) from None
        from .plugins import discovery

        if not discovery.ensure():
            raise
    return _minitensor.execute_custom_op(name, inputs, **attrs)


def execute_custom_op_py(name: str, inputs: Sequence[TensorLike]) -> Tensor:
    """Calls an op by name on a list of tensors; attributes have their defaults."""
    result: Tensor = execute_custom_op(name, inputs)
    return result
