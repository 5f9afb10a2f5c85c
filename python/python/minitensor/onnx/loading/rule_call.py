"""`RuleCall`: a computation by a rule."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from ..._minitensor import Tensor
from . import known
from .conditions import CONDITIONS, FLAGS, Arguments, require
from .graph import Node
from .rule import Rule
from .values import Value, is_text

__all__ = ["RuleCall"]


class RuleCall:
    """A computation by a rule."""

    __slots__ = ("_checked", "_conditions", "_function", "_is_known", "_takes_scope", "_takes_tensors", "rule")

    def __init__(self, rule: Rule, node: Node) -> None:
        self.rule = rule
        flags = [FLAGS[name] for name in node.attributes if name in FLAGS]
        conditions = [*flags, *CONDITIONS.get((node.domain, node.op), ())]
        require((c for c in conditions if not c.is_of_run), self._arguments(node, ()))
        self._conditions = [c for c in conditions if c.is_of_run]
        #: The shapes of tensors that met the conditions.
        self._checked: list[tuple[int, ...]] | None = None
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

    def count(self, node: Node) -> int:
        return 1 + sum(graph.count for graph in node.subgraphs)

    def __call__(self, node: Node, inputs: list[Value], scope: Mapping[str, Value]) -> Sequence[Value]:
        if self._takes_tensors and all(type(x) is Tensor for x in inputs):
            # The usual call, without conversions.
            shapes = [x.shape for x in inputs] if self._conditions else None
            if shapes != self._checked:
                self._check(node, inputs)
                self._checked = shapes
            result = self._function(*inputs)
            return result if isinstance(result, tuple) else (result,)
        if self._is_known and all(x is None or isinstance(x, np.ndarray) and not is_text(x) for x in inputs):
            self._check(node, inputs)
            found = known.compute(node.op, inputs, node.attributes)
            if found is not None:
                return found
        arguments = self.rule.arguments(inputs)
        self._check(node, arguments)
        result = self._function(*arguments, scope=scope) if self._takes_scope else self._function(*arguments)
        return result if isinstance(result, tuple) else (result,)

    def _arguments(self, node: Node, inputs: Sequence[Value]) -> Arguments:
        return Arguments(node, self.rule.attributes, [name for name, _, _ in self.rule.inputs], inputs)

    def _check(self, node: Node, inputs: Sequence[Value]) -> None:
        if self._conditions:
            require(self._conditions, self._arguments(node, inputs))
