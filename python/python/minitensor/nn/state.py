"""Loads what a module saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .._grad_mode import no_grad
from .._minitensor import DType, Tensor, asarray

__all__ = ["LoadedKeys", "load"]

#: What is converted silently to what: never a fraction to a whole number, nor a complex number to a real one.
LADDER = ("bool", "unsigned", "signed", "float", "complex")


class LoadedKeys(NamedTuple):
    """What a module and a saved state did not have in common."""

    missing: list[str]
    unexpected: list[str]


def load(who: str, own: dict[str, Tensor], saved: Mapping[str, Any], strict: bool) -> LoadedKeys:
    """Copies `saved` into the tensors of `own`, all or nothing."""
    if not hasattr(saved, "keys"):
        raise TypeError(f"{who}: a state maps names to tensors, got {type(saved).__name__}")
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
        raise ValueError(f"{who}: the state doesn't fit, and nothing was loaded\n  " + "\n  ".join(faults))
    with no_grad():
        # What can't be written to is found before anything is.
        for name in found:
            own[name].copy_(own[name])
        for name, value in found.items():
            own[name].copy_(value)
    return differing


def _rank(dtype: DType) -> int:
    return LADDER.index(dtype.kind)


def _fitting(tensor: Tensor, given: Any) -> Tensor:
    """What was saved, as a tensor of the same dtype and device."""
    value = given.detach() if isinstance(given, Tensor) else asarray(given)
    if value.shape != tensor.shape:
        raise ValueError(f"the module's shape is {tensor.shape}, the saved one {value.shape}")
    if _rank(value.dtype) > _rank(tensor.dtype):
        raise TypeError(f"the module's dtype is {tensor.dtype.name}, to which {value.dtype.name} can't be converted")
    if value.device != tensor.device:
        raise ValueError(f"the module's tensor is on '{tensor.device}', the saved one on '{value.device}'")
    return value.to(dtype=tensor.dtype)


def _contradictions(own: dict[str, Tensor], found: dict[str, Tensor]) -> list[str]:
    """Tensors that the module has under two names, for which different values were saved."""
    first: dict[int, str] = {}
    faults = []
    for name, value in found.items():
        other = first.setdefault(id(own[name]), name)
        if other != name and not _are_equal(value, found[other]):
            faults.append(f"'{name}' and '{other}' are one tensor in the module, but differ in the state")
    return faults


def _are_equal(x: Tensor, y: Tensor) -> bool:
    """Whether all elements are; one NaN is as good as another."""
    return bool((x == y).logical_or((x != x).logical_and(y != y)).all().item())
