"""A call of an op in Python as a function of ONNX, from the ops that its function calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._minitensor import Tensor, ones, zeros
from ...custom import forward_of
from ...ir.symbols import Size, evaluate
from ...saving import saved, sizes
from ...saving.recording import Recorded, record
from .builder import Builder, Value

if TYPE_CHECKING:
    from .call import Call

__all__ = ["call_composite"]


def call_composite(call: Call) -> list[Value] | None:
    """Writes a call of a function with the calls that the Python function of the op makes.

    Returns None if there is no such function. Raises what it raises if its calls cannot be recorded.
    """
    forward = forward_of(call.op)
    if forward is None:
        return None
    values: list[Value] = []
    arguments = _arguments(call, values)
    attributes = call.plain_attributes()

    def function(*tensors: Tensor) -> Any:
        following = iter(tensors)
        flat: list[Any] = []
        for value in arguments:
            if isinstance(value, list):
                flat += [next(following) for _ in value]
            else:
                flat.append(next(following) if isinstance(value, Value) else value)
        return forward(*flat, **attributes)

    recorded = _recorded(call, function, values)
    names = _names(call, arguments)

    def write(builder: Builder, names: Sequence[str]) -> list[str]:
        from .graph import Graph

        inner = dict(zip((meta.name for meta in recorded.ir.inputs), names, strict=True))
        graph = Graph(recorded.ir, builder, inner, recorded.constants)
        call.graph.opaque.update(graph.opaque)
        return [graph.read(meta.name).apply("Identity").name for meta in recorded.ir.outputs]

    results = call.result_dtypes()
    made = call.builder.functions.of(call.domain, call.function_name, names, [], write, call.documentation())
    return call.builder.nodes_of(made.name, values, [*results], domain=made.domain)


def _arguments(call: Call, values: list[Value]) -> list[Any]:
    """The inputs, whose tensors are appended to the values."""
    found: list[Any] = []
    for i, value in enumerate(call.inputs):
        if isinstance(value, list):
            values += value
        elif value is not None:
            value = call.tensor(i, call.computed_dtype())
            values.append(value)
        found.append(value)
    return found


def _names(call: Call, arguments: Sequence[Any]) -> list[str]:
    """The names of the tensors."""
    names: list[str] = []
    for declared, value in zip(call.definition.inputs, arguments, strict=True):
        if isinstance(value, list):
            names += [f"{declared.name}_{k}" for k in range(len(value))]
        elif isinstance(value, Value):
            names.append(declared.name)
    return names


def _recorded(call: Call, function: Any, values: Sequence[Value]) -> Recorded:
    """The calls of the function, for all sizes of the graph."""
    named: dict[str, Tensor] = {}

    def at(symbols: Mapping[str, int]) -> Recorded:
        examples = tuple(_example(v.shape or (), v.dtype, symbols) for v in values)
        return record(function, examples, {}, named, call.op)

    texts = [str(size) for v in values for size in v.shape or () if not isinstance(size, int)]
    used = [name for name in call.graph.ir.symbols if any(name in text for text in texts)]
    with saved._restored({}):
        found = sizes.generalized(at, {name: 3 + 2 * k for k, name in enumerate(used)}) if used else at({})
    weights = {meta.name: t for meta in found.ir.weights if (t := named.get(meta.name)) is not None}
    return found._replace(constants={**found.constants, **weights})


def _example(shape: Sequence[Size], dtype: str, symbols: Mapping[str, int]) -> Tensor:
    sizes_of = tuple(evaluate(size, symbols) for size in shape)
    return (ones if "float" in dtype or "complex" in dtype else zeros)(sizes_of, dtype=dtype)
