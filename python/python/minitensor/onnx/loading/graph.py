"""Prepared graphs: steps in order, each with the function that computes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from .error import OnnxError
from .values import Value

__all__ = ["Computation", "Graph", "Node", "Step"]


#: The dtype and the shape of an output, if they are known. A size is a number, a name, or None.
OutputType = tuple[str | None, tuple[int | str | None, ...] | None]


class Node:
    """A call of an operator, with the values of its attributes. Subgraphs are of class `Graph`."""

    __slots__ = ("_kept", "attributes", "domain", "inputs", "name", "op", "outputs", "version")

    def __init__(
        self,
        name: str,
        domain: str,
        op: str,
        version: int,
        inputs: Sequence[str],
        outputs: Sequence[str],
        attributes: dict[str, Any],
    ) -> None:
        self.name = name
        self.domain = domain
        self.op = op
        #: The version of the domain.
        self.version = version
        # Inputs that are left out at the end have no names.
        count = max((k + 1 for k, input_name in enumerate(inputs) if input_name), default=0)
        self.inputs = tuple(inputs[:count])
        self.outputs = tuple(outputs)
        self.attributes = attributes
        self._kept: Any = None

    def __str__(self) -> str:
        op = f"{self.domain}.{self.op}" if self.domain else self.op
        shown = f"'{self.name}'" if self.name else f"with the outputs {', '.join(map(repr, self.outputs))}"
        return f"node {shown} ({op})"

    def kept(self, make: Callable[[], Any]) -> Any:
        """Returns the result of `make`, a function of the attributes only. It is called once."""
        if self._kept is None:
            self._kept = make()
        return self._kept

    def wants(self, output: int) -> bool:
        """Whether an output is read."""
        return output < len(self.outputs) and bool(self.outputs[output])

    @property
    def subgraphs(self) -> list[Graph]:
        return [value for value in self.attributes.values() if isinstance(value, Graph)]


class Computation(Protocol):
    """What computes a node."""

    def kind(self, position: int) -> str:
        """Returns what an input takes. See `Rule`."""

    def count(self, node: Node) -> int:
        """Returns how many nodes a call runs, if each loop has one step."""

    def __call__(self, node: Node, inputs: list[Value], scope: Mapping[str, Value]) -> Sequence[Value]:
        """Returns the outputs."""


class Step:
    """A node, what computes it, and the values that no later step reads."""

    __slots__ = ("_computation", "node", "unused")

    def __init__(self, node: Node, computation: Computation) -> None:
        self.node = node
        self._computation = computation
        self.unused: list[str] = []

    @property
    def count(self) -> int:
        """How many nodes it runs."""
        return self._computation.count(self.node)

    def kind(self, position: int) -> str:
        return self._computation.kind(position)

    def run(self, scope: dict[str, Value]) -> None:
        """Adds the outputs to the values of the graph."""
        node = self.node
        try:
            inputs = [scope[name] if name else None for name in node.inputs]
            outputs = self._computation(node, inputs, scope)
        except OnnxError as error:
            # The innermost node is named, and those that call it.
            raise OnnxError(f"{node}: {error}") from error.__cause__
        except MemoryError as error:
            raise MemoryError(f"{node}: {error}") from error
        except KeyError as error:
            raise OnnxError(f"{node}: {error} is not a value that is known here") from error
        except Exception as error:
            raise OnnxError(f"{node}: {error if str(error) else type(error).__name__}") from error
        absent = [name for name in node.outputs[len(outputs) :] if name]
        if absent:
            raise OnnxError(f"{node}: with these attributes, the operator has no output {', '.join(map(repr, absent))}")
        for name, value in zip(node.outputs, outputs, strict=False):
            if name:
                scope[name] = value
        for name in self.unused:
            scope.pop(name, None)


class Graph:
    """A graph, or the body of a function. Subgraphs also read values of the graph around them."""

    __slots__ = ("captured", "constants", "count", "inputs", "name", "outputs", "steps", "types")

    def __init__(
        self,
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        constants: Mapping[str, Value],
        steps: list[Step],
        types: Sequence[OutputType] | None = None,
    ) -> None:
        self.name = name
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        #: What the model says about the outputs.
        self.types = tuple(types or [(None, None)] * len(self.outputs))
        self.constants = dict(constants)
        self.steps = steps
        #: How many nodes a run has, with those of functions and subgraphs, if each loop has one step.
        self.count = sum(step.count for step in steps)
        defined = {*inputs, *self.constants}
        captured: set[str] = set()
        last: dict[str, Step] = {}
        for step in steps:
            for read in _reads(step.node):
                if read not in defined:
                    captured.add(read)
                else:
                    last[read] = step
            for output in step.node.outputs:
                defined.add(output)
                last[output] = step
        captured |= {output for output in outputs if output not in defined}
        #: The names that are defined outside.
        self.captured = captured
        for value, step in last.items():
            if value and value not in self.outputs:
                step.unused.append(value)

    def run(self, scope: Mapping[str, Value], inputs: Iterable[Value]) -> list[Value]:
        """Returns the outputs."""
        inner = dict(scope)
        inner.update(self.constants)
        inner.update(zip(self.inputs, inputs, strict=True))
        for step in self.steps:
            step.run(inner)
        return [inner[name] for name in self.outputs]

    def readers(self) -> dict[str, set[str]]:
        """Returns, for each value, what its readers take, also those in subgraphs. See `Rule`."""
        found: dict[str, set[str]] = {name: {"Value"} for name in self.outputs}
        for step in self.steps:
            for k, name in enumerate(step.node.inputs):
                found.setdefault(name, set()).add(step.kind(k))
            for graph in step.node.subgraphs:
                for name, kinds in graph.readers().items():
                    if name in graph.captured:
                        found.setdefault(name, set()).update(kinds)
        return found


def _reads(node: Node) -> list[str]:
    return [name for name in node.inputs if name] + [name for graph in node.subgraphs for name in graph.captured]
