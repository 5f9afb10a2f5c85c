"""The conversions and executors that were registered."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import torch

from ...ir.check import check_op_type

__all__ = [
    "get_conversion_fn",
    "get_execution_fn",
    "list_executors",
    "list_ops",
    "register_executor",
    "register_op",
    "unregister_executor",
    "unregister_op",
]

Function = TypeVar("Function", bound=Callable[..., Any])


class Registry(Mapping[str, Callable[..., Any]]):
    """Functions by the names of ops. `what` is the word for them in messages."""

    def __init__(self, what: str, parameters: tuple[str, ...]) -> None:
        self._what = what
        self._parameters = parameters
        self._functions: dict[str, Callable[..., Any]] = {}

    def register(self, op_type: str, override: bool) -> Callable[[Function], Function]:
        """Returns a decorator that registers a function."""
        self._check_name(op_type)

        def add(function: Function) -> Function:
            self._check_function(op_type, function)
            if op_type in self._functions and not override:
                raise ValueError(
                    f"the op '{op_type}' already has a registered {self._what}: {self._functions[op_type]!r}; "
                    "unregister it, or pass override=True"
                )
            self._functions[op_type] = function
            return function

        return add

    def unregister(self, op_type: str) -> None:
        """Removes a function."""
        if op_type not in self._functions:
            raise KeyError(f"the op '{op_type}' has no registered {self._what}{_suggestion(op_type, self._functions)}")
        del self._functions[op_type]

    def find(self, op_type: str) -> Callable[..., Any] | None:
        """Returns the function for an op; None if there is none. `custom.gate` is also `custom.gate.default`."""
        found = self._functions.get(op_type)
        return found or self._functions.get(op_type.removesuffix(".default"))

    def _check_name(self, op_type: object) -> None:
        reason = check_op_type(op_type)
        if reason:
            raise ValueError(f"register a {self._what}: {reason}")
        assert isinstance(op_type, str)
        namespace, _, rest = op_type.partition(".")
        if namespace == "aten" and not _is_aten(rest):
            name, _, overload = rest.partition(".")
            known = (
                [f"aten.{name}.{o}" for o in getattr(torch.ops.aten, name).overloads()]
                if _has(name)
                else dir(torch.ops.aten)
            )
            raise ValueError(
                f"register a {self._what}: PyTorch has no op '{op_type}'{_suggestion(op_type, known)}; the names of "
                "ATen are aten.<op>.<overload>, such as aten.add.Tensor"
            )

    def _check_function(self, op_type: str, function: object) -> None:
        if not callable(function):
            raise TypeError(f"the {self._what} of '{op_type}' must be a function, got {type(function).__name__}")
        try:
            inspect.signature(function).bind(*self._parameters)
        except (TypeError, ValueError):
            shown = ", ".join(self._parameters)
            raise TypeError(f"the {self._what} of '{op_type}' must take ({shown}), got {function!r}") from None

    def __getitem__(self, op_type: str) -> Callable[..., Any]:
        return self._functions[op_type]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)


def _has(name: str) -> bool:
    return hasattr(torch.ops.aten, name)


def _is_aten(rest: str) -> bool:
    name, _, overload = rest.partition(".")
    return bool(name) and _has(name) and overload in getattr(torch.ops.aten, name).overloads()


def _suggestion(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean '{close[0]}'?" if close else ""


_CONVERSION_REGISTRY = Registry("conversion", ("node_info",))
_EXECUTION_REGISTRY = Registry("executor", ("inputs", "attrs"))


def register_op(op_type: str, *, override: bool = False) -> Callable[[Function], Function]:
    """Registers a function that converts the calls of an op: it takes a `NodeInfo` and returns an `OpNode`.

    Raises ValueError if the name is not valid or is taken; `override=True` replaces a function.
    """
    return _CONVERSION_REGISTRY.register(op_type, override)


def register_executor(op_type: str, *, override: bool = False) -> Callable[[Function], Function]:
    """Registers a function that computes the calls of an op: it takes the inputs, a list of `torch.Tensor`s, and the
    attributes, a dict, and returns a list of `torch.Tensor`s.

    Raises ValueError if the name is not valid or is taken; `override=True` replaces a function.
    """
    return _EXECUTION_REGISTRY.register(op_type, override)


def unregister_op(op_type: str) -> None:
    """Removes the conversion of an op. Raises KeyError if there is none."""
    _CONVERSION_REGISTRY.unregister(op_type)


def unregister_executor(op_type: str) -> None:
    """Removes the executor of an op. Raises KeyError if there is none."""
    _EXECUTION_REGISTRY.unregister(op_type)


def get_conversion_fn(op_type: str) -> Callable[..., Any] | None:
    """Returns the registered conversion of an op, or None."""
    return _CONVERSION_REGISTRY.find(op_type)


def get_execution_fn(op_type: str) -> Callable[..., Any] | None:
    """Returns the registered executor of an op, or None."""
    return _EXECUTION_REGISTRY.find(op_type)


def list_ops() -> list[str]:
    """Returns the names of the ops that have a registered conversion."""
    return sorted(_CONVERSION_REGISTRY)


def list_executors() -> list[str]:
    """Returns the names of the ops that have a registered executor."""
    return sorted(_EXECUTION_REGISTRY)
