"""The definitions of ops, as the bridges to other libraries read them."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ._minitensor import _array_function, _definition, _op_identity

__all__ = [
    "INTEGER_FUNCTIONS",
    "Attribute",
    "Axis",
    "Definition",
    "Dims",
    "Input",
    "Output",
    "Role",
    "Shapes",
    "define",
    "functions_of",
    "is_of_bits",
    "needed",
    "operands_of",
    "renumbered",
]


#: The functions of programs whose last operand is an integer, not the position of a node.
INTEGER_FUNCTIONS = ("powi", "polygamma", "shift")


#: Functions without operands.
_LEAVES = {"input", "uniform", "constant", "bits", "epsilon", "truth"}


def operands_of(node: Sequence[Any]) -> Sequence[int]:
    """The nodes that a node of a program uses: its function, operands and, for some functions, numbers."""
    function, *operands = node
    if function in _LEAVES:
        return []
    if function == "scan":
        return operands[2:]
    return operands[:1] if function in INTEGER_FUNCTIONS else operands


def renumbered(node: Sequence[Any], places: Mapping[int, int] | Sequence[int]) -> tuple[Any, ...]:
    """A node with operands at other places."""
    operands = operands_of(node)
    start = 3 if node[0] == "scan" else 1
    return (*node[:start], *(places[at] for at in operands), *node[start + len(operands) :])


def needed(nodes: Sequence[Sequence[Any]], results: Sequence[int], among: Container[int] | None = None) -> list[int]:
    """The nodes that results need, in order. Nodes that are not `among` these are needed without their operands."""
    found: set[int] = set()
    open_ = list(results)
    while open_:
        at = open_.pop()
        if at not in found:
            found.add(at)
            open_ += operands_of(nodes[at]) if among is None or at in among else []
    return sorted(found)


def functions_of(nodes: Sequence[Sequence[Any]]) -> Iterator[str]:
    """The functions of the nodes of a program, and of the steps of its scans."""
    for function, *operands in nodes:
        yield function
        if function == "scan":
            yield from functions_of(operands[0]["nodes"])


def is_of_bits(function: str) -> bool:
    """Whether a function of programs takes or returns the bits of floats."""
    return "bits" in function.split("_")


class Input(NamedTuple):
    """A tensor argument."""

    name: str
    #: `one`, `optional`, or `variadic` for a list of tensors.
    arity: str
    #: Whether the op changes it in place.
    mutated: bool
    #: The name of a dtype variable, a dtype, or `any`.
    dtype: str
    differentiable: bool


class Attribute(NamedTuple):
    """An argument that is not a tensor."""

    name: str
    kind: str
    #: The words that it admits, if they are fixed.
    choices: list[str]
    optional: bool
    required: bool
    default: Any


class Output(NamedTuple):
    """A tensor that the op returns."""

    name: str
    dtype: str
    differentiable: bool


class Dims(NamedTuple):
    """The dimensions of a tensor."""

    #: Whether any number of batch dimensions precedes the core dimensions.
    has_batch: bool
    #: The core dimensions: names, numbers, `("attr", name)`, or `(operator, left, right)`.
    core: tuple[Any, ...]


class Axis(NamedTuple):
    """The `axis` clause: the caller chooses the axes of the core dimension."""

    attribute: str
    keepdims: str | None
    is_several: bool

    def keeps(self, attrs: Mapping[str, Any]) -> bool:
        """Whether the results keep the axes as dimensions of size 1. The attributes are complete."""
        return self.keepdims is not None and bool(attrs[self.keepdims])

    def given(self, attrs: Mapping[str, Any], rank: int) -> Sequence[int]:
        """The axes as the caller gave them. The attributes are complete."""
        value = attrs[self.attribute]
        return range(rank) if value is None else [value] if isinstance(value, int) else value

    def is_valid(self, attrs: Mapping[str, Any], rank: int) -> bool:
        """Whether the axes exist, and each occurs once."""
        axes = self.given(attrs, rank)
        # A tensor without dimensions has a row of one element.
        most = max(rank, 1)
        is_inside = all(-most <= axis < most for axis in axes)
        return is_inside and len({axis % most for axis in axes}) == len(axes)

    def chosen(self, attrs: Mapping[str, Any], rank: int) -> list[int]:
        """The axes, counted from the first dimension, in ascending order.

        Raises IndexError for an axis that does not exist.
        """
        if not self.is_valid(attrs, rank):
            given = list(self.given(attrs, rank))
            raise IndexError(f"{self.attribute} {given} must be different axes of a tensor with {rank} dimensions")
        return sorted(axis % rank for axis in self.given(attrs, rank)) if rank else []

    def from_the_end(self, attrs: Mapping[str, Any], rank: int) -> dict[str, Any]:
        """The attributes with the axes counted from the last dimension: more batch dimensions do not change them."""

        def moved(axis: int) -> int:
            return axis if axis < 0 else axis - rank

        value = attrs[self.attribute]
        axes = range(rank) if value is None else value
        return {**attrs, self.attribute: moved(axes) if isinstance(axes, int) else [moved(axis) for axis in axes]}


class Role(NamedTuple):
    """The tensor of an op whose shape a tensor has. A cotangent has that of a result, a gradient that of an input."""

    is_output: bool
    position: int


class Shapes(NamedTuple):
    """The shape clause. The last input or output stands for all tensors of a list."""

    inputs: tuple[Dims, ...]
    outputs: tuple[Dims, ...]
    axis: Axis | None

    def of(self, role: Role) -> Dims:
        """The dimensions of a tensor."""
        dims = self.outputs if role.is_output else self.inputs
        return dims[min(role.position, len(dims) - 1)]

    @property
    def is_batched(self) -> bool:
        """Whether all results have batch dimensions."""
        return all(dims.has_batch for dims in self.outputs)


class Definition:
    """The definition of an op."""

    def __init__(self, name: str) -> None:
        data = _definition(name)
        self.name: str = data["name"]
        #: The name, and its aliases.
        self.names: list[str] = data["names"]
        self.inputs = [Input(**i) for i in data["inputs"]]
        self.attrs = [Attribute(**a) for a in data["attrs"]]
        self.outputs = [Output(**o) for o in data["outputs"]]
        #: The dtypes of each dtype variable.
        self.dtypes: dict[str, list[str]] = data["dtypes"]
        #: The positions of inputs in which the op is linear together.
        self.linear: list[list[int]] = data["linear"]
        #: How the results for parts of a row combine: `add`, `average`, …
        self.combine: str | None = data["combine"]
        #: Whether the op returns a list of tensors.
        self.gives_list: bool = data["gives_list"]
        #: Whether the body is a program of elements or rows.
        self.has_program: bool = data["has_program"]
        #: For each output, whether the gradient reads it.
        self.results_read: list[bool] = data["results_read"]
        #: Why the op has no gradient, if so.
        self.no_gradient: str | None = data["no_gradient"]
        #: Whether the inputs broadcast to the shape of the results.
        self.is_elementwise: bool = data["shape"][0] == "broadcast"
        #: The shape clause; None if only the body knows the shapes.
        self.shapes = _shapes(data["shape"])

    @property
    def is_variadic(self) -> bool:
        """Whether the last input is a list of tensors."""
        return bool(self.inputs) and self.inputs[-1].arity == "variadic"

    @property
    def mutated(self) -> str | None:
        """The name of an input that the op changes in place."""
        return next((i.name for i in self.inputs if i.mutated), None)

    def complete(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """All attributes: the given ones, and the defaults of the others."""
        return {a.name: a.default for a in self.attrs} | dict(attrs)


def _shapes(clause: Sequence[Any]) -> Shapes | None:
    match clause:
        case ("broadcast",):
            scalar = (Dims(True, ()),)
            return Shapes(scalar, scalar, None)
        case ("core", inputs, outputs, axis):
            inputs, outputs = (tuple(Dims(batch, tuple(core)) for batch, core in side) for side in (inputs, outputs))
            return Shapes(inputs, outputs, Axis(*axis) if axis else None)
        case _:
            return None


@functools.lru_cache(1024)
def _made(name: str, identity: int) -> tuple[Definition, object]:
    # As long as the function exists, no other op has this identity.
    function = _array_function(name)
    return Definition(name), function


def define(name: str) -> Definition:
    """Returns the definition of the op that has this name at present."""
    identity = _op_identity(name)
    return Definition(name) if identity is None else _made(name, identity)[0]
