"""The IR: a graph of calls without weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from . import check, difference, dot, reading, running, statistics, text, writing
from .meta import Constant, TensorMeta
from .node import OpNode

__all__ = ["IR"]


@dataclass
class IR:
    """A graph of calls. Weights have a name, a shape and a dtype, but no elements.

    All tensors have different names. A call comes after the calls whose results it reads.

    >>> from minitensor import ir
    >>> x, w, y = (ir.TensorMeta(name, (2,), "float32") for name in ("x", "w", "y"))
    >>> graph = ir.IR("scale", [x], [w], [ir.OpNode("y", "minitensor.multiply", [x, w], [y])], [y])
    >>> print(graph)
    ir scale
    input x: float32 (2,)
    weight w: float32 (2,)
    %y: float32 (2,) = minitensor.multiply(x, w)
    return y
    >>> ir.IR.from_json(graph.to_json()) == graph
    True
    """

    name: str
    inputs: list[TensorMeta]
    weights: list[TensorMeta]
    nodes: list[OpNode]
    outputs: list[TensorMeta]
    constants: list[Constant] = field(default_factory=list)
    #: The symbols of sizes, with the least and the greatest value; None if there is no limit.
    symbols: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    #: The new values of weights and inputs that the model changes: the name of the tensor, and of its new value.
    updates: dict[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Raises IRError, which lists all defects, unless the IR is well-formed."""
        check.check(self)

    def tensors(self) -> Iterator[TensorMeta]:
        """Yields all tensors: inputs, weights, constants, and the results of the calls."""
        yield from self.inputs
        yield from self.weights
        yield from (constant.meta for constant in self.constants)
        for node in self.nodes:
            yield from node.outputs

    def to_json(self) -> str:
        """Returns the IR as JSON. Equal IRs have equal texts. The format is that of `schema.json`."""
        return writing.to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes, max_bytes: int = reading.MAX_BYTES) -> IR:
        """Reads an IR. The text need not be trusted: no code runs, and any defect raises IRError."""
        return reading.from_json(cls, text, max_bytes)

    def __str__(self) -> str:
        return text.shown(self)

    def to_dot(self) -> str:
        """Returns the graph in the language of Graphviz."""
        return dot.to_dot(self)

    def diff(self, other: IR) -> list[str]:
        """Returns the differences to another IR, one in a line; none if they are equal."""
        return difference.diff(self, other)

    def statistics(self, **symbols: int) -> statistics.Statistics:
        """Returns the number of parameters, FLOPs and bytes moved, in total and for each call.

        If sizes are symbols, pass their values: `statistics(s0=8)`.
        """
        return statistics.of(self, symbols)

    def run(self, inputs: Any, weights: Any = None) -> list[Any]:
        """Computes the results: tensors of the library of the inputs, in the order of `outputs`.

        `inputs` is a sequence of tensors in the order of the IR, or a dict by name. `weights` is a dict by name, or a
        PyTorch module. Tensors may be those of minitensor, PyTorch or NumPy. Calls that minitensor does not have are
        computed by PyTorch.

        Raises IRError if weights or inputs are missing, unexpected, or of another shape or dtype, and if a call fails
        or contradicts the IR.
        """
        return running.Program(self, weights, jit=False)(inputs)

    def run_with_updates(self, inputs: Any, weights: Any = None) -> tuple[list[Any], dict[str, Any]]:
        """Computes the results, and the new values of the weights and inputs that the model changes, by name.

        The weights and inputs do not change. For a model in training mode, the new values are the running
        statistics, for example: `weights.update(updates)`, or `model.load_state_dict(updates, strict=False)`.
        """
        return running.Program(self, weights, jit=False).with_updates(inputs)

    def compile(self, weights: Any = None) -> running.Program:
        """Returns a function of the inputs, for many runs. If all calls are native, it is a graph of `mt.jit`."""
        return running.Program(self, weights)

    def coverage(self) -> running.Coverage:
        """Returns which calls minitensor computes, and which PyTorch computes."""
        return running.coverage(self)

    def verify(self, model: Any, inputs: Any, **options: Any) -> float:
        """Compares the results with those of the PyTorch model. Returns the largest difference."""
        from ..torch_ir import verification

        return verification.verify(self, model, inputs, **options)
