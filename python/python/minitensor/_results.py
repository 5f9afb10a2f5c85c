"""What ops of several outputs return: named tuples."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

__all__ = ["result_class"]


# Type checkers want the names in a call of `namedtuple` to be literals.
_named_tuple: Any = namedtuple


def result_class(op: str, name: str, fields: list[str]) -> Any:
    """The class of an op's results. The class is no attribute of a module, so they are pickled by the op's name."""
    made = _named_tuple(name, fields, module="minitensor.ops")
    made.__reduce__ = lambda self: (_rebuild, (op, tuple(self)))
    return made


def _rebuild(op: str, values: tuple[Any, ...]) -> Any:
    """What a pickle calls."""
    from ._minitensor import _result_class

    return _result_class(op)(*values)
