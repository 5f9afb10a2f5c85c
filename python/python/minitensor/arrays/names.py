"""Names of ops."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._minitensor import CustomOp, __version__

__all__ = ["Owner", "op_name", "owner"]


def op_name(op: Any, function: str) -> str:
    """Returns the name of an op: a name, `mt.ops.<op>`, `mt.ops.<namespace>.<op>`, or a `CustomOp`."""
    if isinstance(op, str):
        return op
    if isinstance(op, CustomOp):
        return op.name
    module = getattr(op, "__module__", "") or ""
    if not module.startswith("minitensor.ops"):
        raise TypeError(f"{function} takes an op such as mt.ops.swish, or its name, got {op!r}")
    namespace = module.removeprefix("minitensor.ops").strip(".").replace(".", "::")
    return f"{namespace}::{op.__name__}" if namespace else str(op.__name__)


class Owner(NamedTuple):
    """The owner of an op: a plugin, or minitensor."""

    plugin: str | None
    version: str


def owner(name: str) -> Owner:
    """Returns the plugin with an op, and its version. Ops that belong to no plugin belong to minitensor."""
    from ..plugins import list_plugins

    for info in list_plugins():
        if name in info.ops:
            return Owner(info.name, str(info.version))
    return Owner(None, __version__)
