"""The calls of an IR as calls of ops."""

from __future__ import annotations

from typing import Any

from .. import ops
from .._definitions import define

__all__ = ["DETACH", "KEY", "PREFIX", "RESULTS", "attributes", "function", "inputs"]

#: The beginning of an `op_type`, before the name of an op of minitensor.
PREFIX = "minitensor."
#: The `op_type` of a key for random numbers. Each run takes a new one.
KEY = "random.key"
#: The `op_type` of a tensor without its history.
DETACH = "tensor.detach"
#: The attribute that lists the results of a call that are used, if not all are.
RESULTS = "results__"


def inputs(op: str) -> list[tuple[str, str]]:
    """Returns the names and arities of the inputs of an op."""
    return [(declared.name, declared.arity) for declared in define(op).inputs]


def function(op: str) -> Any:
    """Returns the function of a registered op."""
    found: Any = ops
    for part in op.split("::"):
        found = getattr(found, part)
    return found


def attributes(op: str) -> list[str]:
    """Returns the names of the attributes of an op."""
    return [declared.name for declared in define(op).attrs]
