"""One function for every registered op: `mt.ops.swish(x)`; `mt.ops.ns.op(x)` for those of a namespace.

The functions are made from the registry when the package is imported, and whenever an op is registered.
"""

from ._minitensor import describe

__all__ = ["describe"]


def __dir__():  # type: ignore[no-untyped-def]
    return [name for name in globals() if not name.startswith("_")]
