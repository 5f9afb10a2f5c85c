"""How a call becomes nodes: by a rule, by the program of the op, or as a node of the op's own domain."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

from ..._minitensor import DType, _is_built_in
from .builder import Value
from .call import Call
from .program import call_program
from .rule import RULES, Refused

__all__ = ["lowered"]


@cache
def _load() -> None:
    """Fills the table: each module of `rules` has the rules of a family."""
    from . import rules

    for module in pkgutil.iter_modules(rules.__path__):
        importlib.import_module(f"{rules.__name__}.{module.name}")


def lowered(call: Call) -> list[Value]:
    """Writes the nodes of a call. Returns its results."""
    _load()
    reason = None
    # An op that changes its input has the rule of the op that does not.
    rule = RULES.get(call.op if call.definition.mutated is None else call.op.removesuffix("_"))
    if not _is_built_in(call.op):
        rule = None
    if rule is not None:
        try:
            return rule.apply(call)
        except Refused as refused:
            reason = refused.reason
    found = call_program(call)
    if found is not None:
        return found
    if _is_built_in(call.op):
        raise call.error(
            reason or "it has no rule for ONNX", "avoid the op, or compute its result outside of the model"
        )
    return _opaque(call)


def _opaque(call: Call) -> list[Value]:
    """Writes a node of the op's own domain, which a runtime computes if it has a kernel for it."""
    if call.definition.mutated is not None:
        raise call.error(
            "it changes its input in place and has no program", "write an op that returns a new tensor, or a program"
        )
    call.graph.opaque[call.op] = call.domain
    inputs: list[Value | None] = []
    for i, value in enumerate(call.inputs):
        if isinstance(value, list):
            inputs += value
        else:
            inputs.append(None if value is None else call.tensor(i, call.computed_dtype()))
    attributes = {name: _attribute(value) for name, value in call.plain_attributes().items()}
    dtypes: list[str | None] = list(call.result_dtypes())
    return call.builder.nodes_of(call.function_name, inputs, dtypes, domain=call.domain, **attributes)


def _attribute(value: Any) -> Any:
    return (
        value.name
        if isinstance(value, DType)
        else int(value)
        if isinstance(value, bool)
        else value or None
        if (isinstance(value, list))
        else value
    )
