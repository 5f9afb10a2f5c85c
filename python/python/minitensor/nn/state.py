"""Loading of saved module states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .._grad_mode import no_grad
from .._minitensor import DType, Tensor, asarray

__all__ = ["LoadedKeys", "load"]

#: A saved tensor may be converted to the same or a later kind. No fractional or imaginary part is lost.
DTYPE_KINDS = ("bool", "unsigned", "signed", "float", "complex")


class LoadedKeys(NamedTuple):
    """The names that only the module has, and those that only the saved state has."""

    missing: list[str]
    unexpected: list[str]


def load(module: str, own: dict[str, Tensor], saved: Mapping[str, Any], strict: bool) -> LoadedKeys:
    """Copies `saved` into the tensors of `own`. On an error, changes none of them."""
    if not hasattr(saved, "keys"):
        raise TypeError(f"{module}: a state must be a mapping of names to tensors, got {type(saved).__name__}")
    keys = list(saved.keys())
    differing = LoadedKeys([name for name in own if name not in keys], [name for name in keys if name not in own])
    faults = []
    if strict and differing.missing:
        faults.append(f"missing: {', '.join(differing.missing)}")
    if strict and differing.unexpected:
        faults.append(f"unexpected: {', '.join(map(str, differing.unexpected))}")
    found: dict[str, Tensor] = {}
    for name, tensor in own.items():
        if name in keys:
            try:
                found[name] = _fitting(tensor, saved[name])
            except (TypeError, ValueError) as error:
                faults.append(f"'{name}': {error}")
    faults += _contradictions(own, found)
    if faults:
        raise ValueError(f"{module}: the state does not match, nothing was loaded\n  " + "\n  ".join(faults))
    with no_grad():
        # Copying each tensor to itself raises for read-only tensors before any is changed.
        for name in found:
            own[name].copy_(own[name])
        for name, value in found.items():
            own[name].copy_(value)
    return differing


def _rank(dtype: DType) -> int:
    return DTYPE_KINDS.index(dtype.kind)


def _fitting(tensor: Tensor, given: Any) -> Tensor:
    """Returns the saved value as a tensor of the same dtype and device."""
    value = given.detach() if isinstance(given, Tensor) else asarray(given)
    if value.shape != tensor.shape:
        raise ValueError(f"the module's shape is {tensor.shape}, the saved one {value.shape}")
    if _rank(value.dtype) > _rank(tensor.dtype):
        raise TypeError(
            f"the module's dtype is {tensor.dtype.name}, which cannot store {value.dtype.name} without loss"
        )
    if value.device != tensor.device:
        raise ValueError(f"the module's tensor is on '{tensor.device}', the saved one on '{value.device}'")
    return value.to(dtype=tensor.dtype)


def _contradictions(own: dict[str, Tensor], found: dict[str, Tensor]) -> list[str]:
    """Reports tensors that the module has under two names, but that have different saved values."""
    first: dict[int, str] = {}
    faults = []
    for name, value in found.items():
        other = first.setdefault(id(own[name]), name)
        if other != name and not _are_equal(value, found[other]):
            faults.append(f"'{name}' and '{other}' are one tensor in the module, but differ in the state")
    return faults


def _are_equal(x: Tensor, y: Tensor) -> bool:
    """Returns whether all elements are equal. NaNs compare equal."""
    return bool((x == y).logical_or((x != x).logical_and(y != y)).all().item())
