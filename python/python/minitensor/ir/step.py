"""How a call is computed: providers offer steps, and the first offer is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .node import Input, OpNode, replaced
from .symbols import Sym, evaluate
from .values import Kind

__all__ = ["PROVIDERS", "Provider", "Source", "Step", "bound", "resolved"]

#: What computes a call: an executor that was registered, minitensor, or PyTorch.
Source = Literal["registered", "native", "fallback"]


@dataclass(frozen=True)
class Step:
    """The computation of a call, given tensors of a library and the values of symbols."""

    source: Source
    library: Kind
    compute: Callable[[Sequence[Any], Mapping[str, int]], Any]


Provider = Callable[[OpNode], Step | None]

#: The providers before minitensor itself. `minitensor.torch_ir` adds one for registered executors.
PROVIDERS: list[Provider] = []


def resolved(value: Any, inputs: Sequence[Any], symbols: Mapping[str, int]) -> Any:
    """Returns an attribute with the values of symbols and the tensors of lists."""

    def item(value: Any) -> Any:
        match value:
            case Sym(text):
                return evaluate(text, symbols)
            case Input(position):
                return inputs[position]
        return value

    return replaced(value, item)


def has_inputs(value: Any) -> bool:
    """Whether an attribute refers to tensors."""
    if isinstance(value, (list, tuple)) and not isinstance(value, Input):
        return any(map(has_inputs, value))
    return isinstance(value, Input)


def positions(value: Any) -> list[int]:
    """Returns the positions of the tensors that an attribute refers to."""
    if isinstance(value, Input):
        return [value.position]
    return [p for item in value for p in positions(item)] if isinstance(value, (list, tuple)) else []


def free(node: OpNode) -> list[int]:
    """Returns the positions of the inputs that are arguments of their own: no attribute refers to them."""
    taken = set(positions(list(node.attrs.values())))
    return [i for i in range(len(node.inputs)) if i not in taken]


def bound(node: OpNode, parameters: Sequence[str], inputs: Sequence[Any], symbols: Mapping[str, int]) -> dict[str, Any]:
    """Returns the arguments of a call by name: the attributes, and the tensors for the other parameters, in order."""
    arguments = {name: resolved(value, inputs, symbols) for name, value in node.attrs.items()}
    others = (name for name in parameters if name not in arguments)
    return arguments | dict(zip(others, (inputs[i] for i in free(node)), strict=False))
