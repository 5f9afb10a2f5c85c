"""Checks of what control flow gets and returns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from .._minitensor import Tensor
from ..elements import Element
from . import tree
from .call import Kind, fresh


def expect_functions(functions: Mapping[str, Any]) -> None:
    """An error unless all are functions."""
    for where, function in functions.items():
        if not callable(function):
            raise TypeError(f"{where} must be a function, got {type(function).__name__}")


def expect_truth(where: str, value: Any) -> None:
    """An error unless the value is a bool, or a bool tensor of shape ()."""
    if isinstance(value, bool):
        return
    if isinstance(value, Element):
        raise TypeError(f"{where} is a number or a truth value for each element; select by mt.ops.where instead")
    if not isinstance(value, Tensor):
        raise TypeError(f"{where} must be a bool or a bool tensor of shape (), got {type(value).__name__}")
    if value.dtype.name != "bool" or value.shape != ():
        raise TypeError(
            f"{where} must be a bool tensor of shape (), got {tree.described(value)}; compare it, as by x > 0, or "
            "reduce it with all() or any()"
        )


def tensors_in(where: str, value: Any) -> list[Tensor]:
    """Returns the tensors in nested lists, tuples and dicts."""
    tensors: list[Tensor] = []
    tree.flatten(value, tensors, [], where)
    return tensors


def copied(where: str, value: Any) -> Any:
    """Returns the result of a function, with copies of its tensors."""
    tensors: list[Tensor] = []
    rebuild = tree.rebuilder(value, tensors, where)
    return rebuild(iter([fresh(t) for t in tensors]))


def differentiable(tensors: Sequence[Tensor], kinds: Sequence[Kind]) -> list[Tensor]:
    """Returns the cotangents of tensors of real and complex numbers."""
    return [t for t, kind in zip(tensors, kinds, strict=True) if kind.is_differentiable]


class Signature(NamedTuple):
    """The structure of a value, and the shapes and dtypes of its tensors."""

    key: list[Hashable]
    kinds: list[Kind]
    text: str

    @staticmethod
    def of(value: Any) -> Signature:
        """Returns the signature of a value."""
        tensors: list[Tensor] = []
        key: list[Hashable] = []
        tree.flatten(value, tensors, key)
        return Signature(key, [Kind.of(t) for t in tensors], tree.described(value))

    def check(self, rule: str, value: Any) -> None:
        """An error unless the value has this signature."""
        got = Signature.of(value)
        if got != self:
            raise TypeError(f"{rule}; expected {self.text}, got {got.text}")
