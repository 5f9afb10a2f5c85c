"""Calls that minitensor computes: by a rule, or by the op of the same name."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import ops
from .._definitions import define
from .node import OpNode
from .step import Step, bound, free, has_inputs, resolved

__all__ = ["RULES", "Rule", "native", "rule"]

Condition = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True)
class Rule:
    """A function that computes a call. Its parameters have the names of the schema.

    The parameter `out_dtype`, if there is one, is the name of the dtype of the first result.
    """

    function: Callable[..., Any]
    parameters: Mapping[str, inspect.Parameter]
    #: Whether the rule computes a call with these attributes.
    condition: Condition | None
    #: Whether it rounds in several steps. Half floats are then computed in float32, as in PyTorch.
    in_steps: bool | Condition

    def step(self, node: OpNode) -> Step | None:
        """Returns the step; None if the rule does not compute a call with these attributes."""
        attrs = {name: value for name, value in node.attrs.items() if name in self.parameters}
        # An attribute that the rule does not know must be without effect.
        others = [value for name, value in node.attrs.items() if name not in self.parameters]
        if any(value is not None and value is not False for value in others):
            return None
        if self.condition is not None and not self.condition(attrs):
            return None
        # Tensors that are None are attributes. Parameters without a tensor or an attribute have defaults.
        given = OpNode(node.name, node.op_type, node.inputs, node.outputs, attrs)
        names = [name for name in self.parameters if name != "out_dtype"]
        extra = {"out_dtype": node.outputs[0].dtype} if "out_dtype" in self.parameters and node.outputs else {}
        free_names = [name for name in names if name not in attrs]
        taken = free(given)
        needed = [n for n in free_names[len(taken) :] if self.parameters[n].default is inspect.Parameter.empty]
        if len(taken) > len(free_names) or needed:
            return None

        def compute(inputs: Sequence[Any], symbols: Mapping[str, int]) -> Any:
            return self.function(**bound(given, names, inputs, symbols), **extra)

        in_steps = self.in_steps if isinstance(self.in_steps, bool) else self.in_steps(attrs)
        if not in_steps or not any(meta.dtype in _HALF for meta in (*node.inputs, *node.outputs)):
            return Step("native", "minitensor", compute)
        extra = {name: "float32" if dtype in _HALF else dtype for name, dtype in extra.items()}

        def compute_once(inputs: Sequence[Any], symbols: Mapping[str, int]) -> Any:
            found = compute([_widened(x) for x in inputs], symbols)
            results = found if isinstance(found, (list, tuple)) else [found]
            return [_rounded(x, meta.dtype) for x, meta in zip(results, node.outputs, strict=True)]

        return Step("native", "minitensor", compute_once)


_HALF = ("float16", "bfloat16")


def _widened(x: Any) -> Any:
    return ops.astype(x, "float32") if x.dtype.name in _HALF else x


def _rounded(x: Any, dtype: str) -> Any:
    return ops.astype(x, dtype) if dtype in _HALF and x.dtype.name == "float32" else x


#: The rules by the names of ops.
RULES: dict[str, Rule] = {}


def rule(
    *names: str, when: Condition | None = None, in_steps: bool | Condition = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds a rule for ops of ATen, such as `add.Tensor`. `default` may be left out. See `Rule` for `in_steps`."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        made = Rule(function, dict(inspect.signature(function).parameters), when, in_steps)
        for name in names:
            full = f"aten.{name}" if "." in name else f"aten.{name}.default"
            assert full not in RULES, full
            RULES[full] = made
        return function

    return add


@functools.cache
def _load() -> None:
    """Fills the table: each module of `aten` has the rules of a family."""
    from . import aten

    for module in pkgutil.iter_modules(aten.__path__):
        importlib.import_module(f"{aten.__name__}.{module.name}")


def native(node: OpNode) -> Step | None:
    """Returns how minitensor computes a call; None if it does not."""
    if node.op_type.startswith("minitensor."):
        return _op(node)
    _load()
    found = RULES.get(node.op_type)
    return found.step(node) if found else None


def _op(node: OpNode) -> Step | None:
    """An op of minitensor: `minitensor.swish`, or `minitensor.linalg::matrix_product`."""
    name = node.op_type.removeprefix("minitensor.")
    try:
        definition = define(name)
    except (LookupError, ValueError, RuntimeError):
        return None
    function: Any = ops
    for part in name.split("::"):
        function = getattr(function, part)
    names = [i.name for i in definition.inputs]

    def compute(inputs: Sequence[Any], symbols: Mapping[str, int]) -> Any:
        if definition.is_variadic and not any(map(has_inputs, node.attrs.values())):
            attrs = {name: resolved(value, inputs, symbols) for name, value in node.attrs.items()}
            single = len(names) - 1
            arguments = dict(zip(names, inputs[:single], strict=True)) | {names[-1]: list(inputs[single:])} | attrs
        else:
            arguments = bound(node, names, inputs, symbols)
        result = function(**arguments)
        return list(result) if isinstance(result, tuple) else [] if result is None else result

    return Step("native", "minitensor", compute)
