"""Named tuples, which ops with several outputs return."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

__all__ = ["result_class"]


# Type checkers require literal names in a call of `namedtuple`.
_named_tuple: Any = namedtuple


def result_class(op: str, name: str, fields: list[str]) -> Any:
    """Creates the result class of an op. It belongs to no module, so results are pickled by the name of the op."""
    made = _named_tuple(name, fields, module="minitensor.ops")
    made.__reduce__ = lambda self: (_rebuild, (op, tuple(self)))
    return made


def _rebuild(op: str, values: tuple[Any, ...]) -> Any:
    """Recreates a result from its pickle."""
    from ._minitensor import _result_class

    return _result_class(op)(*values)
