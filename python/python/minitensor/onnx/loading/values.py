"""What flows through a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ... import _minitensor as mt
from ..._minitensor import Tensor
from .error import OnnxError
from .narrow import FORMATS, NarrowTensor, decoded

__all__ = [
    "Fixed",
    "Known",
    "Scope",
    "Tensor",
    "Text",
    "Value",
    "described",
    "from_array",
    "is_text",
    "known",
    "may_be_known",
    "public",
    "tensor",
    "text",
]

#: Numbers that are known without running the model, such as shapes. They remain known under `mt.jit`.
Known: TypeAlias = npt.NDArray[Any]
#: Strings: an array of objects.
Text: TypeAlias = npt.NDArray[Any]
#: A tensor that is not trained, such as a running mean.
Fixed: TypeAlias = Tensor
#: Any value: a tensor, an array, a narrow tensor, a sequence, or an optional that is empty.
Value: TypeAlias = Any
#: The values that subgraphs of a node may read, by their names.
Scope: TypeAlias = Mapping[str, Value]

_BY_ML_NAME = {found.ml_name: found for found in FORMATS.values()}


def may_be_known(array: npt.NDArray[Any]) -> bool:
    """Whether NumPy computes with numbers of this dtype: `ml_dtypes` also has kinds of floats."""
    return array.dtype.kind in "biuf" and array.dtype.name not in _BY_ML_NAME


def is_text(value: Value) -> bool:
    """Whether a value is an array of strings."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "OUS"


def described(value: Value) -> str:
    """Describes a value for an error."""
    if value is None:
        return "an empty optional"
    if isinstance(value, list):
        return f"a sequence of {len(value)}"
    if is_text(value):
        return f"strings {value.shape}"
    if isinstance(value, NarrowTensor):
        return f"{value.format.name} {value.shape}"
    if isinstance(value, (Tensor, np.ndarray)):
        return f"{value.dtype.name} {tuple(value.shape)}"
    return type(value).__name__


def tensor(value: Value) -> Tensor:
    """Returns a tensor."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray) and not is_text(value):
        if not value.size:
            return mt.zeros(value.shape, dtype=value.dtype.name)
        # A graph has no arrays of another library, but numbers of lists.
        return Tensor(value.tolist() if mt._is_recording() else value, dtype=value.dtype.name)
    if isinstance(value, NarrowTensor):
        raise OnnxError(
            f"a tensor of {value.format.name} takes part in computations only after DequantizeLinear or Cast"
        )
    raise OnnxError(f"expected a tensor, got {described(value)}")


def known(value: Value) -> Known:
    """Returns numbers. Those of a tensor are read, which a graph of `mt.jit` cannot repeat."""
    if isinstance(value, np.ndarray) and not is_text(value):
        return value
    if isinstance(value, Tensor):
        return value.detach().numpy()
    raise OnnxError(f"expected numbers, got {described(value)}")


def text(value: Value) -> Text:
    """Returns an array of strings."""
    if is_text(value):
        found: Text = value
        return found
    raise OnnxError(f"expected strings, got {described(value)}")


def from_array(array: npt.NDArray[Any]) -> Value:
    """Returns the value of an array: strings, a narrow tensor, or a tensor that has a copy of its numbers."""
    if is_text(array):
        return array.astype(object)
    found = _BY_ML_NAME.get(array.dtype.name)
    return Tensor(array) if found is None else decoded(array, found)


def public(value: Value) -> Value:
    """Returns a result as users see it: known numbers are tensors."""
    if isinstance(value, list):
        return [public(item) for item in value]
    return tensor(value) if isinstance(value, np.ndarray) and not is_text(value) else value
