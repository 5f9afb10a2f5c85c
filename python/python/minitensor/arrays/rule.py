"""The shape rule of an op, and its signature in NumPy's notation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .._definitions import Axis, Definition, Dims, Role, define
from .names import op_name

__all__ = ["Operand", "Rule", "core_rule", "gufunc_signature", "text", "written"]


class Operand(NamedTuple):
    """The shape of an input or an output."""

    name: str
    #: Whether the core dimensions may have dimensions before them.
    is_batched: bool
    #: The core dimensions: names, numbers, or expressions as tuples.
    core: tuple[Any, ...]


class Rule(NamedTuple):
    """The shapes of the inputs and outputs of a call."""

    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    axis: Axis | None
    is_elementwise: bool


def core_rule(definition: Definition, attrs: dict[str, Any], function: str) -> Rule:
    """Returns the rule of an op. Attributes in sizes are replaced by their values.

    Raises TypeError for an op without such a rule.
    """
    name = definition.name
    if definition.mutated is not None:
        raise TypeError(
            f"{function}: op '{name}' changes its input '{definition.mutated}' in place; use an op that returns its "
            "result"
        )
    shapes = definition.shapes
    if shapes is None or definition.is_variadic:
        why = (
            f"takes a list of tensors as '{definition.inputs[-1].name}'"
            if definition.is_variadic
            else "computes the shape of its result by a function"
        )
        raise TypeError(
            f"{function}: op '{name}' {why}; only element ops and ops with a shape clause have a signature, "
            "see mt.ops.describe(name)"
        )
    attrs = definition.complete(attrs)
    inputs = [_operand(i.name, shapes.of(Role(False, k)), attrs) for k, i in enumerate(definition.inputs)]
    outputs = [_operand(o.name, shapes.of(Role(True, k)), attrs) for k, o in enumerate(definition.outputs)]
    return Rule(tuple(inputs), tuple(outputs), shapes.axis, definition.is_elementwise)


def _operand(name: str, dims: Dims, attrs: dict[str, Any]) -> Operand:
    return Operand(name, dims.has_batch, tuple(_size(d, attrs) for d in dims.core))


_ARITHMETIC = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b,
}


def _size(dim: Any, attrs: dict[str, Any]) -> Any:
    """Returns a dimension with the values of attributes; sizes that are numbers are computed."""
    if not isinstance(dim, tuple):
        return int(dim) if isinstance(dim, float) and dim.is_integer() else dim
    if dim[0] == "attr":
        value = attrs.get(dim[1])
        return value if isinstance(value, int) else dim
    operator, left, right = dim[0], _size(dim[1], attrs), _size(dim[2], attrs)
    is_known = isinstance(left, int) and isinstance(right, int)
    return _ARITHMETIC[operator](left, right) if is_known else (operator, left, right)


def written(dim: Any) -> str:
    """Returns a dimension as text for a message."""
    if not isinstance(dim, tuple):
        return str(dim)
    return dim[1] if dim[0] == "attr" else f"{written(dim[1])} {dim[0]} {written(dim[2])}"


def text(inputs: Iterable[Sequence[Any]], outputs: Iterable[Sequence[Any]]) -> str:
    """Returns a signature in NumPy's notation."""
    left, right = (",".join(f"({','.join(map(str, core))})" for core in side) for side in (inputs, outputs))
    return f"{left}->{right}"


def gufunc_signature(op: Any, **attrs: Any) -> str:
    """Returns the shape rule of an op in NumPy's notation for generalized ufuncs.

    `op` is an op or its name. `attrs` are values for attributes that are sizes of dimensions. The core dimensions are
    those of a call in which `axis` selects the last axis. Element ops have no core dimensions.

    Raises TypeError for an op whose rule the notation cannot express: one that changes its input, takes a list of
    tensors, computes the shape of its result by a function, or computes a size from others; and for an unknown
    attribute.

    >>> import minitensor as mt
    >>> mt.gufunc_signature("layer_norm")
    '(n),(n),(n)->(n)'
    >>> mt.gufunc_signature(mt.ops.hypot)
    '(),()->()'
    >>> mt.gufunc_signature("one_hot", num_classes=10)
    '()->(10)'
    """
    name = op_name(op, "gufunc_signature")
    definition = define(name)
    known = [a.name for a in definition.attrs]
    for attr in attrs:
        if attr not in known:
            raise TypeError(f"gufunc_signature: op '{definition.name}' has no attribute '{attr}'; it has {known}")
    rule = core_rule(definition, attrs, "gufunc_signature")
    for operand in (*rule.inputs, *rule.outputs):
        for dim in operand.core:
            if isinstance(dim, tuple):
                fix = f"; pass {dim[1]}=…" if dim[0] == "attr" else ""
                raise TypeError(
                    f"gufunc_signature: op '{definition.name}': the size '{written(dim)}' of '{operand.name}' is "
                    "neither "
                    f"a name nor a number, which NumPy's notation requires{fix}"
                )
    return text((o.core for o in rule.inputs), (o.core for o in rule.outputs))
