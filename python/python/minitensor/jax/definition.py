"""The definition of an op: its arguments, its results, and its shape clause."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from .._minitensor import _definition, _op_identity


class Input(NamedTuple):
    """A tensor argument."""

    name: str
    arity: str
    mutated: bool
    dtype: str
    differentiable: bool


class Dims(NamedTuple):
    """The dimensions of a tensor: whether it has any number of batch dimensions, then the core dimensions."""

    has_batch: bool
    core: tuple[Any, ...]


class Axis(NamedTuple):
    """The attribute that moves the core dimension, if an op has one."""

    attribute: str
    keepdims: str | None
    is_several: bool


class Shapes(NamedTuple):
    """The shape clause. The last input or output stands for all tensors of a list."""

    inputs: tuple[Dims, ...]
    outputs: tuple[Dims, ...]
    axis: Axis | None

    def of(self, role: Role) -> Dims:
        """The dimensions of a tensor."""
        dims = self.outputs if role.is_output else self.inputs
        return dims[min(role.position, len(dims) - 1)]


class Role(NamedTuple):
    """The tensor of an op whose shape a tensor has. A cotangent has that of a result, a gradient that of an input."""

    is_output: bool
    position: int


class Definition:
    """The definition of a registered op."""

    def __init__(self, name: str) -> None:
        data = _definition(name)
        self.name: str = data["name"]
        self.inputs = [Input(**i) for i in data["inputs"]]
        self.attributes: list[str] = [a["name"] for a in data["attrs"]]
        self.outputs: list[str] = [o["name"] for o in data["outputs"]]
        self.gives_list: bool = data["gives_list"]
        self.no_gradient: str | None = data["no_gradient"]
        self.shapes = _shapes(data)

    @property
    def is_variadic(self) -> bool:
        """Whether the last input is a list of tensors."""
        return bool(self.inputs) and self.inputs[-1].arity == "variadic"

    @property
    def mutated(self) -> str | None:
        """The name of the argument that the op changes in place."""
        return next((i.name for i in self.inputs if i.mutated), None)


def _shapes(data: dict[str, Any]) -> Shapes | None:
    """The shape clause; None if only the body knows the shapes."""
    match data["shape"]:
        case ("broadcast",):
            scalar = (Dims(True, ()),)
            return Shapes(scalar, scalar, None)
        case ("core", inputs, outputs, axis):

            def dims(all_dims: list[Any]) -> tuple[Dims, ...]:
                return tuple(Dims(batch, tuple(core)) for batch, core in all_dims)

            return Shapes(dims(inputs), dims(outputs), Axis(*axis) if axis else None)
        case _:
            return None


@functools.lru_cache(1024)
def _made(name: str, identity: int) -> Definition:
    return Definition(name)


def define(name: str) -> Definition:
    """Returns the definition of the op that has this name at present."""
    identity = _op_identity(name)
    return Definition(name) if identity is None else _made(name, identity)
