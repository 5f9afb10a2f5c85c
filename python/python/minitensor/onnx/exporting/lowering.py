"""How a call becomes nodes: by a rule, by its program, by the calls that it makes, or as a node of its own domain."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

from ..._minitensor import DType, _is_built_in
from .builder import Value
from .call import Call
from .composite import call_composite
from .error import ExportError
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
    """Writes the nodes of a call. Returns its results, or the new values of the tensors that it changes."""
    return _built_in(call) if _is_built_in(call.op) else _custom(call)


def _built_in(call: Call) -> list[Value]:
    _load()
    # An op that changes its input has the rule of the op that does not.
    rule = RULES.get(call.op if call.definition.mutated is None else call.op.removesuffix("_"))
    reason = "it has no rule for ONNX"
    if rule is not None:
        try:
            return rule.apply(call)
        except Refused as refused:
            reason = refused.reason
    found = call_program(call)
    if found is None:
        raise call.error(reason, "avoid the op, or compute its result outside of the model")
    return found


def _custom(call: Call) -> list[Value]:
    found = call_program(call)
    if found is not None:
        return found
    if call.definition.mutated is not None:
        raise call.error(
            "it changes its input in place and has no program", "write an op that returns a new tensor, or a program"
        )
    reason = "it has no program"
    try:
        found = call_composite(call)
    except ExportError:
        raise
    except Exception as error:
        # The function is the user's, and may do anything.
        reason = f"its function cannot be recorded: {error}"
    return _opaque(call, reason) if found is None else found


def _opaque(call: Call, reason: str) -> list[Value]:
    """Writes a node of the op's own domain, which a runtime computes if it has a kernel for it."""
    call.graph.opaque[call.op] = call.domain, reason
    inputs: list[Value | None] = []
    for i, value in enumerate(call.inputs):
        if isinstance(value, list):
            inputs += value
        else:
            inputs.append(None if value is None else call.tensor(i, call.computed_dtype()))
    attributes = {name: _attribute(value) for name, value in call.plain_attributes().items()}
    return call.builder.nodes_of(call.function_name, inputs, [*call.result_dtypes()], domain=call.domain, **attributes)


def _attribute(value: Any) -> Any:
    """An attribute as ONNX has it. An empty list has no type, and is left out, as None is."""
    if isinstance(value, DType):
        return value.name
    if isinstance(value, list):
        return value or None
    return int(value) if isinstance(value, bool) else value
