"""One function for each registered op: `mt.ops.swish(x)`, or `mt.ops.ns.op(x)` in a namespace.

The functions are created from the registry when the package is imported, and when an op is registered.
"""

from ._minitensor import describe

__all__ = ["describe"]

#: Makes the namespaces importable, although no folder has them.
__path__: list[str] = []


def __dir__():  # type: ignore[no-untyped-def]
    return [name for name in globals() if not name.startswith("_")]
