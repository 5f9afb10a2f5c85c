"""A call of an op."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .meta import TensorMeta
from .symbols import Sym

__all__ = ["Input", "OpNode", "replaced"]


class Input(NamedTuple):
    """In an attribute: the tensor at this position of `inputs`. It is used in lists of tensors."""

    position: int


@dataclass
class OpNode:
    """A call of an op.

    `op_type` is the name of the op, such as `aten.add.Tensor` or `minitensor.swish`. `attrs` has the arguments that are
    not tensors: None, bool, int, float, complex, str, `Sym`, and lists of them. An optional tensor that is not given is
    None in `attrs`. The tensors of a list are `Input`s in `attrs`.

    >>> from minitensor import ir
    >>> x, y = ir.TensorMeta("x", (2,), "float32"), ir.TensorMeta("y", (2,), "float32")
    >>> print(ir.OpNode("y", "minitensor.elu", [x], [y], {"alpha": 2.0}))
    %y: float32 (2,) = minitensor.elu(x, alpha=2.0)
    """

    name: str
    op_type: str
    inputs: list[TensorMeta]
    outputs: list[TensorMeta]
    attrs: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        results = ", ".join(f"%{o}" for o in self.outputs)
        shown = {name: replaced(value, self._shown) for name, value in self.attrs.items()}
        arguments = [*(i.name for i in self.inputs), *(f"{name}={value!r}" for name, value in shown.items())]
        return f"{results or '%' + self.name} = {self.op_type}({', '.join(arguments)})"

    def _shown(self, value: Any) -> Any:
        match value:
            case Input(position) if position in range(len(self.inputs)):
                return _Plain(self.inputs[position].name)
            case Sym(text):
                return _Plain(text)
        return value


class _Plain(str):
    """A text that is shown without quotes."""

    def __repr__(self) -> str:
        return str(self)


def replaced(value: Any, function: Callable[[Any], Any]) -> Any:
    """Applies a function to the items of nested lists."""
    return [replaced(item, function) for item in value] if type(value) in (list, tuple) else function(value)
