"""A call of an op with a program as a function of ONNX, which any runtime can execute."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from onnx import TensorProto, helper

from ..._definitions import functions_of, is_of_bits, operands_of
from ..._minitensor import _program
from . import dtypes, reductions
from .builder import Builder, Value
from .leaves import EPSILON, leaf
from .primitives import PRIMITIVES
from .row_functions import ROW_FUNCTIONS
from .rows import Rows
from .storage import stored

if TYPE_CHECKING:
    from .call import Call

__all__ = ["call_program"]

#: The functions over rows whose result is one number per row.
_REDUCTIONS: dict[str, Callable[[Value, Sequence[int]], Value]] = {
    "max": lambda x, axes: reductions.extremum("ReduceMax", x, axes, True),
    "min": lambda x, axes: reductions.extremum("ReduceMin", x, axes, True),
    "prod": lambda x, axes: reductions.reduced("ReduceProd", x, axes, True),
    "sum": lambda x, axes: reductions.reduced("ReduceSum", x, axes, True),
}


class _Program(NamedTuple):
    """The program of a call."""

    nodes: list[list[Any]]
    outputs: list[int]
    #: The names of the uniforms.
    names: list[str]
    #: What each input and each uniform is: an input of the op, or a number.
    inputs: list[tuple[str, Any]]
    uniforms: list[tuple[str, Any]]
    is_of_rows: bool
    #: For each output of the op, whether it has one value per element of a row.
    returns_rows: list[bool]


class _Term(NamedTuple):
    """The value of a node of a program."""

    value: Value
    #: Whether it has one value per element of a row.
    is_row: bool
    #: The inputs of the op that it depends on.
    read: frozenset[int]


def call_program(call: Call) -> list[Value] | None:
    """Writes a call of the function with the op's program. Returns None if the op has no program."""
    definition = call.definition
    given = [x is not None for x in call.inputs]
    found = _program(definition.name, call.plain_attributes(), given)
    if found is None:
        return None
    data = json.loads(found.pop("program"))
    program = _Program(data["nodes"], [at for _, at in data["outputs"]], data["uniforms"], **found)
    dtype = dtypes.in_full_precision(call.computed_dtype())
    if dtype.startswith("complex"):
        raise call.error("ONNX has no arithmetic of complex numbers", "compute with real and imaginary parts")
    if any(is_of_bits(name) for name in functions_of(program.nodes)):
        raise call.error(
            "ONNX has no functions of the bits of floats", "avoid the op, or compute its result outside of the model"
        )
    if program.is_of_rows and dtype in dtypes.INTEGERS:
        # As in the engine.
        dtype = "uint64" if dtype == "uint64" else "int64"
    values = {i: call.tensor(i, dtype) for i, x in enumerate(call.inputs) if x is not None}
    names = [definition.inputs[i].name for i in values]
    attributes = {k: name for k, name in enumerate(program.names) if _is_attribute(call, program, k, dtype)}
    outputs = call.result_dtypes()

    def write(builder: Builder, names: Sequence[str]) -> list[str]:
        inputs = {
            i: Value(builder, name, values[i].dtype, values[i].shape) for name, i in zip(names, values, strict=True)
        }
        body = _Body(call, program, builder, inputs, dtype, attributes)
        return body.results(outputs)

    function = call.builder.functions.of(
        call.domain, call.function_name, names, list(attributes.values()), write, call.documentation()
    )
    results: Sequence[str | None] = outputs
    numbers = {name: _attribute(program.uniforms[k][1], dtype) for k, name in attributes.items()}
    return call.builder.nodes_of(function.name, list(values.values()), results, domain=function.domain, **numbers)


def _is_attribute(call: Call, program: _Program, k: int, dtype: str) -> bool:
    """Whether a uniform is an attribute of the function. Integers have other bounds, so theirs are constants."""
    is_float = any(a.name == program.names[k] and a.kind == "float" for a in call.definition.attrs)
    return is_float and program.uniforms[k][0] == "number" and dtype in EPSILON


def _attribute(value: float, dtype: str) -> Any:
    """A number as an attribute of a node; one of float64 as a tensor, because ONNX has float32 only."""
    if dtype == "float32":
        return float(value)
    return helper.make_tensor("", TensorProto.DOUBLE, [], [value])


class _Body:
    """Writes the nodes of the function."""

    def __init__(
        self,
        call: Call,
        program: _Program,
        builder: Builder,
        inputs: dict[int, Value],
        dtype: str,
        attributes: dict[int, str],
    ) -> None:
        self._call = call
        self._program = program
        self._builder = builder
        self._dtype = dtype
        self._attributes = attributes
        self._rows = self._layout(inputs) if program.is_of_rows else None
        #: The inputs in their places, for those that results do not read.
        self._inputs: dict[int, Value] = {}
        self._terms: list[_Term] = []
        of_rows = {which for kind, which in program.inputs if kind == "input"}
        ranks = call.ranks()
        for i, x in inputs.items():
            if self._rows is not None:
                x = self._rows.rows(x, ranks[i]) if i in of_rows else self._rows.numbers(x)
            self._inputs[i] = x
        for node in program.nodes:
            self._terms.append(self._term(*node))

    def _layout(self, inputs: dict[int, Value]) -> Rows:
        definition, program = self._call.definition, self._program
        needs_order = any(name == "position" or name in ROW_FUNCTIONS for name, *_ in program.nodes)
        ranks = self._call.ranks()
        rank = max((ranks[i] for i in inputs), default=0)
        axis = definition.shapes.axis if definition.shapes is not None else None
        if axis is None:
            return Rows(self._builder, [-1], rank, False, needs_order)
        attrs = definition.complete(self._call.attrs)
        axes = [k - rank for k in axis.chosen(attrs, rank)]
        return Rows(self._builder, axes, rank, axis.keeps(attrs), needs_order)

    def _term(self, name: str, *operands: Any) -> _Term:
        builder, rows, dtype = self._builder, self._rows, self._dtype
        nothing: frozenset[int] = frozenset()
        match name:
            case "input":
                return self._argument(self._program.inputs[operands[0]], rows is not None)
            case "uniform":
                k = operands[0]
                if k in self._attributes:
                    return _Term(self._number_attribute(self._attributes[k]), False, nothing)
                return self._argument(self._program.uniforms[k], False)
            case "count":
                assert rows is not None
                return _Term(rows.count().cast(dtype), False, nothing)
            case "position":
                assert rows is not None
                return _Term(rows.position(dtype), True, nothing)
        if (constant := leaf(builder, name, operands, dtype)) is not None:
            return _Term(constant, False, nothing)
        terms = [self._terms[at] for at in operands_of((name, *operands))]
        numbers = operands[:2] if name == "scan" else operands[len(terms) :]
        read = nothing.union(*(term.read for term in terms))
        if name in _REDUCTIONS or name in ROW_FUNCTIONS:
            assert rows is not None
            given = [self._as_number(rows.of_rows(term.value, term.is_row)) for term in terms]
            if name in _REDUCTIONS:
                return _Term(_REDUCTIONS[name](given[0], rows.axes), False, read)
            return _Term(ROW_FUNCTIONS[name](*given, rows.axes[0], *numbers), True, read)
        function = PRIMITIVES[name]
        values = [term.value for term in terms]
        if name not in ("truthy", "and", "or", "not", "select"):
            values = [self._as_number(value) for value in values]
        elif name == "select":
            values = [values[0], *(self._as_number(value) for value in values[1:])]
        return _Term(function(*values, *numbers), any(term.is_row for term in terms), read)

    def _as_number(self, value: Value) -> Value:
        return value.cast(self._dtype)

    def _argument(self, argument: tuple[str, Any], is_row: bool) -> _Term:
        kind, which = argument
        if kind == "number":
            return _Term(self._builder.number(which, self._dtype), False, frozenset())
        if which not in self._inputs:
            # An absent input is not read.
            return _Term(self._builder.number(0, self._dtype), False, frozenset())
        return _Term(self._inputs[which], is_row, frozenset([which]))

    def _number_attribute(self, name: str) -> Value:
        """An attribute of the function as a number."""
        builder = self._builder
        found = builder.node("Constant", dtype=self._dtype)
        reference = builder.nodes[-1].attribute.add()
        reference.ref_attr_name = name
        kind = ("value_float", "FLOAT") if self._dtype == "float32" else ("value", "TENSOR")
        reference.name, reference.type = kind[0], type(reference).AttributeType.Value(kind[1])
        return found

    def results(self, outputs: Sequence[str]) -> list[str]:
        """Returns the names of the results, which have these dtypes."""
        names: list[str] = []
        for k, (at, dtype) in enumerate(zip(self._program.outputs, outputs, strict=True)):
            term = self._terms[at]
            is_row = self._rows is not None and self._program.returns_rows[k]
            value = self._complete(term, is_row)
            if self._rows is not None:
                value = self._rows.restored(value, is_row)
            value = stored(value, dtype)
            if value.name in names or not self._is_made(value):
                # ONNX has no function whose result is an input, or another result.
                value = value.apply("Identity")
            names.append(value.name)
        return names

    def _is_made(self, value: Value) -> bool:
        return any(value.name in node.output for node in self._builder.nodes)

    def _complete(self, term: _Term, is_row: bool) -> Value:
        """The value in the shape of the result: the inputs that it does not depend on broadcast, too."""
        value, rows = term.value, self._rows
        if rows is not None and is_row:
            value = rows.of_rows(value, term.is_row)
        for i, x in self._inputs.items():
            if i not in term.read:
                if rows is not None and not is_row and any(w == i for _, w in self._program.inputs):
                    x = rows.first(x)
                value = self._builder.node("Expand", value, self._builder.shape(x))
        return value
