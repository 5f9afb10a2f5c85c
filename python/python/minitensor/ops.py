"""One function for every registered op: `mt.ops.swish(x)`; `mt.ops.ns.op(x)` for those of a namespace.

The functions are made from the registry when the package is imported; ops that are registered later, from Python or by
plugins, appear when they are asked for.
"""

from ._minitensor import _lookup_op, _op_names, describe

__all__ = ["describe"]


def _lookup_in(namespace):  # type: ignore[no-untyped-def]
    """What finds the ops of a namespace's module that were registered later."""
    return lambda name: _lookup_op(f"{namespace}::{name}")


def __getattr__(name):  # type: ignore[no-untyped-def]
    return _lookup_op(name)


def __dir__():  # type: ignore[no-untyped-def]
    later = {name.partition("::")[0] for name in _op_names(True) if "." not in name}
    return [*{*later, *(name for name in globals() if not name.startswith("_"))}]
