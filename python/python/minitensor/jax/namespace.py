"""The functions of a namespace of ops, as attributes."""

from __future__ import annotations

from typing import Any

from .._minitensor import _op_names, describe
from .op import Op

_ops: dict[str, Op] = {}


def find(name: str) -> Op:
    """Returns the function of an op.

    Raises an error that names similar ops if no op has the name.
    """
    op = _ops.get(name)
    if op is None or not op.is_current():
        # Raises an error if there is no such op.
        describe(name)
        op = _ops[name] = Op(name, 0 if op is None else op.version + 1)
    return op


class Namespace:
    """The ops of a namespace, such as `minitensor.jax.random`."""

    def __init__(self, name: str, prefix: str) -> None:
        self.__name__ = name
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        return attribute(self.__name__, self._prefix, name)

    def __dir__(self) -> list[str]:
        return names(self._prefix)

    def __repr__(self) -> str:
        return f"<ops of {self.__name__}>"


def attribute(module: str, prefix: str, name: str) -> Any:
    """Returns the op or the namespace of this name within a namespace."""
    if name.startswith("__"):
        raise AttributeError(f"'{module}' has no attribute '{name}'")
    full = prefix + name
    inner = f"{full}::"
    if any(op.startswith(inner) for op in _op_names()):
        return Namespace(f"{module}.{name}", inner)
    try:
        return find(full)
    except (ValueError, KeyError, AttributeError, RuntimeError, TypeError) as error:
        raise AttributeError(f"'{module}' has no op '{name}': {error}") from error


def names(prefix: str) -> list[str]:
    """The ops and namespaces within a namespace."""
    own = (name.removeprefix(prefix) for name in _op_names() if name.startswith(prefix))
    return sorted({name.partition("::")[0] for name in own})
