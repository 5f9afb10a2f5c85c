"""Prepared graphs: steps in order, each with the function that computes it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..._minitensor import Tensor
from . import known
from .error import OnnxError
from .rule import Rule
from .values import Value, is_text

__all__ = ["Computation", "Graph", "Node", "RuleCall", "Step"]


#: The dtype and the shape of an output, if they are known. A size is a number, a name, or None.
OutputType = tuple[str | None, tuple[int | str | None, ...] | None]


class Node:
    """A call of an operator, with the values of its attributes. Subgraphs are of class `Graph`."""

    __slots__ = ("attributes", "domain", "inputs", "name", "op", "outputs", "version")

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

    def __str__(self) -> str:
        op = f"{self.domain}.{self.op}" if self.domain else self.op
        shown = f"'{self.name}'" if self.name else f"with the outputs {', '.join(map(repr, self.outputs))}"
        return f"node {shown} ({op})"

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

    def __call__(self, node: Node, inputs: list[Value], scope: Mapping[str, Value]) -> Sequence[Value]:
        """Returns the outputs."""


class RuleCall:
    """A computation by a rule."""

    __slots__ = ("_function", "_is_known", "_takes_scope", "_takes_tensors", "rule")

    def __init__(self, rule: Rule, node: Node) -> None:
        self.rule = rule
        special = {"node": node} if "node" in rule.special else {}
        self._function = functools.partial(rule.function, **node.attributes, **special)
        self._takes_scope = "scope" in rule.special
        count = len(node.inputs)
        self._takes_tensors = (
            not self._takes_scope
            and all(rule.kind(k) in ("Tensor", "Fixed", "Value") for k in range(count))
            and (count <= len(rule.inputs) or rule.rest is not None)
            and not any(is_required for _, _, is_required in rule.inputs[count:])
        )
        self._is_known = not node.domain and node.version >= 13

    def kind(self, position: int) -> str:
        return self.rule.kind(position)

    def __call__(self, node: Node, inputs: list[Value], scope: Mapping[str, Value]) -> Sequence[Value]:
        if self._takes_tensors and all(type(x) is Tensor for x in inputs):
            # The usual call, without conversions.
            result = self._function(*inputs)
            return result if isinstance(result, tuple) else (result,)
        if self._is_known and all(x is None or isinstance(x, np.ndarray) and not is_text(x) for x in inputs):
            found = known.compute(node.op, inputs, node.attributes)
            if found is not None:
                return found
        arguments = self.rule.arguments(inputs)
        result = self._function(*arguments, scope=scope) if self._takes_scope else self._function(*arguments)
        return result if isinstance(result, tuple) else (result,)


class Step:
    """A node, what computes it, and the values that no later step reads."""

    __slots__ = ("_computation", "node", "unused")

    def __init__(self, node: Node, computation: Computation) -> None:
        self.node = node
        self._computation = computation
        self.unused: list[str] = []

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

    __slots__ = ("captured", "constants", "inputs", "name", "outputs", "steps", "types")

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
