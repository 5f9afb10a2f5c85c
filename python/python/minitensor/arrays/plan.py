"""The core axes, the signature, and the shapes and dtypes of the results of a call on chunked arrays."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._definitions import define
from .._minitensor import Tensor, empty
from .axes import normalize_axis_tuple
from .block import BlockFunction
from .rule import Operand, Rule, core_rule

__all__ = ["Input", "Output", "Plan", "check_classes", "labelled", "make_plan", "split_message"]


class Input(NamedTuple):
    """An array of the call."""

    name: str
    array: Any
    #: The axes of the core dimensions, and the names of these dimensions.
    axes: tuple[int, ...]
    core: tuple[str, ...]


class Output(NamedTuple):
    """A result of the call."""

    name: str
    dtype: np.dtype
    #: The names of the core dimensions, their places in the result, and their sizes.
    core: tuple[str, ...]
    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    #: The axes of size 1 that `keepdims` adds.
    kept: tuple[int, ...]


class Plan(NamedTuple):
    """A call of an op on blocks that contain whole core dimensions, as the last ones."""

    function: BlockFunction
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]

    @property
    def signature(self) -> str:
        """The signature in NumPy's notation."""
        left, right = (",".join(f"({','.join(x.core)})" for x in side) for side in (self.inputs, self.outputs))
        return f"{left}->{right}"

    @property
    def new_sizes(self) -> dict[str, int]:
        """The sizes of the core dimensions that no input has."""
        known = {name for x in self.inputs for name in x.core}
        return {
            name: size for x in self.outputs for name, size in zip(x.core, x.sizes, strict=True) if name not in known
        }


def make_plan(
    name: str, arrays: dict[str, Any], attrs: dict[str, Any], shape_of: Callable[[str, Any, int], Sequence[Any]]
) -> Plan:
    """Plans a call of the op on the arguments `arrays`, by the names of the inputs.

    `shape_of(name, array, core)` is the shape of an array with `core` core dimensions, for the inference of the
    result. A size that
    is not a number is unknown. Raises the errors of the op for shapes, dtypes and attributes that it does not accept.
    Nothing is
    computed.
    """
    definition = define(name)
    rule = core_rule(definition, attrs, "map_blocks")
    complete = definition.complete(attrs)
    specs = [i.name for i in definition.inputs]
    given = {o.name: arrays[o.name] for o in rule.inputs if arrays.get(o.name) is not None}
    of = {key: x for key, x in given.items() if _is_array(x)}
    axes = _core_axes(name, rule, of, complete)
    cores = {o.name: _names(o, axes, rule) for o in (*rule.inputs, *rule.outputs)}
    metas = {key: _meta(name, key, shape_of(key, x, len(cores[key])), x.dtype) for key, x in of.items()}
    results = _call_on_meta(name, specs, given | metas, attrs)
    keepdims = rule.axis is not None and rule.axis.keeps(complete)
    inputs = tuple(
        Input(key, x, _places(o, x.ndim, axes, rule), cores[key])
        for o in rule.inputs
        for key, x in of.items()
        if key == o.name
    )
    outputs = []
    for operand, result in zip(rule.outputs, results, strict=True):
        kept = tuple(axes) if keepdims and axes and not operand.core else ()
        places = () if kept else _places(operand, result.ndim, axes, rule)
        core = () if kept else cores[operand.name]
        sizes = tuple(result.shape[a] for a in places)
        outputs.append(Output(operand.name, numpy_dtype(str(result.dtype)), core, places, sizes, kept))
    function = BlockFunction(name, _arguments(specs, given, of), attrs | _last_axes(rule, axes, attrs))
    return Plan(function, inputs, tuple(outputs))


def _is_array(x: Any) -> bool:
    return hasattr(x, "dtype") and hasattr(x, "shape") and getattr(x, "ndim", None) is not None


def _arguments(specs: Sequence[str], given: dict[str, Any], arrays: dict[str, Any]) -> tuple[Any, ...] | None:
    """Returns the inputs of a block: `...` for arrays, and numbers and absent inputs as they are."""
    arguments = tuple(... if key in arrays else given.get(key) for key in specs)
    return None if all(a is ... for a in arguments) else arguments


def _core_axes(name: str, rule: Rule, arrays: dict[str, Any], attrs: dict[str, Any]) -> tuple[int, ...] | None:
    """Returns the axes that the attribute of an `axis` clause selects, sorted; `None` if the op has no such clause."""
    if rule.axis is None:
        return None
    rank = next(arrays[o.name].ndim for o in rule.inputs if o.core and o.name in arrays)
    axis = attrs[rule.axis.attribute]
    chosen = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    try:
        return tuple(sorted(normalize_axis_tuple(tuple(chosen), rank)))
    except ValueError as error:
        raise ValueError(f"map_blocks: op '{name}': {error}") from None


def _last_axes(rule: Rule, axes: tuple[int, ...] | None, attrs: dict[str, Any]) -> dict[str, Any]:
    """Returns the attributes that select the last axes, for a block whose core dimensions are the last ones."""
    if rule.axis is None or axes is None:
        return {}
    name, keepdims, is_many = rule.axis
    last: Any = tuple(range(-len(axes), 0)) if is_many else -1
    return {name: last} | ({keepdims: False} if keepdims else {})


def _names(operand: Operand, axes: tuple[int, ...] | None, rule: Rule) -> tuple[str, ...]:
    """Returns names for the core dimensions of an operand. A size that is no name gets a name of its own."""
    made: list[str] = []
    shared = {d for o in rule.inputs for d in o.core if isinstance(d, str)}
    for k, dim in enumerate(operand.core):
        made.append(dim if isinstance(dim, str) and dim in shared else f"{operand.name}_{k}")
    if axes is None or len(axes) == 1 or not made:
        return tuple(made)
    return tuple(f"{made[0]}{k}" for k in range(len(axes)))


def _places(operand: Operand, rank: int, axes: tuple[int, ...] | None, rule: Rule) -> tuple[int, ...]:
    """Returns the axes of the core dimensions of an operand."""
    if axes is None or not operand.core:
        return tuple(range(rank - len(operand.core), rank))
    return axes


def _meta(name: str, key: str, shape: Sequence[Any], dtype: Any) -> Tensor:
    """Returns a tensor without values."""
    # An unknown size does not affect the other sizes.
    known = [1 if isinstance(n, float) and math.isnan(n) else int(n) for n in shape]
    try:
        return empty(known, dtype=np.dtype(dtype).name, device="meta")
    except (TypeError, ValueError) as error:
        raise TypeError(f"map_blocks: op '{name}': input '{key}': {error}") from None


def _call_on_meta(name: str, specs: Sequence[str], given: dict[str, Any], attrs: dict[str, Any]) -> list[Tensor]:
    """Returns tensors without values that have the shapes and dtypes of the results."""
    from .. import ops

    function: Any = ops
    for part in name.split("::"):
        function = getattr(function, part)
    results = function(*(given.get(key) for key in specs[: _last_given(specs, given)]), **attrs)
    return list(results) if isinstance(results, tuple) else [results]


def _last_given(specs: Sequence[str], given: dict[str, Any]) -> int:
    return max((k + 1 for k, key in enumerate(specs) if key in given), default=0)


def numpy_dtype(name: str) -> np.dtype:
    """Returns NumPy's dtype of this name, or that of ml_dtypes."""
    if name != "bfloat16":
        return np.dtype(name)
    try:
        ml_dtypes: Any = importlib.import_module("ml_dtypes")
    except ImportError as error:
        raise TypeError(
            "NumPy does not support bfloat16; install ml_dtypes, or convert with astype('float32') first"
        ) from error
    made: np.dtype = np.dtype(ml_dtypes.bfloat16)
    return made


def check_classes(name: str, arrays: dict[str, Any], classes: tuple[type, ...], described: str) -> None:
    """Raises TypeError for an input that is neither an array of these classes, nor one of NumPy, nor a number."""
    for key, x in arrays.items():
        for item in x if isinstance(x, list | tuple) else [x]:
            if item is not None and not isinstance(item, (*classes, np.ndarray, np.generic, bool, int, float, complex)):
                raise TypeError(
                    f"map_blocks: op '{name}': input '{key}' must be {described}, an array of NumPy or a number, "
                    f"got {type(item).__name__}"
                )


def labelled(plan: Plan, arrays: Sequence[Any]) -> list[Any]:
    """Returns each array and labels for its dimensions, in one list. Dimensions with the same label need the same
    chunks."""
    made: list[Any] = []
    for given, array in zip(plan.inputs, arrays, strict=True):
        # Dimensions before the core dimensions are matched from the right.
        made += [array, (*range(len(given.core) - array.ndim, 0), *given.core)]
    return made


def split_message(plan: Plan, given: Input, axis: int, count: int, fix: str) -> str:
    """Returns the message for a core dimension that is divided into chunks."""
    name = plan.function.__name__
    return (
        f"map_blocks: op '{name}' needs whole rows along axis {axis} of input '{given.name}', which is divided into "
        f"{count} chunks; "
        f"{fix}"
    )
