"""How calls are divided among devices.

The batch dimensions of the shape clause are independent, so each device can compute its part of a batch. The gradient
of a tensor without a batch, such as a weight, is the sum of the parts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from .._definitions import Dims, Role, Shapes
from .call import Call

#: JAX before 0.7 cannot say which dimensions are replicated. There, only `infer_sharding_from_operands` decides it.
_KNOWS_REPLICATION = "need_replication_factors" in inspect.signature(custom_partitioning.def_partition).parameters

#: The name of each dimension. Equal names of different tensors are the same dimension.
Factors = list[str]
#: The mesh axes over which a dimension is sharded.
Axes = tuple[str, ...]


class Rule:
    """The names of the dimensions of the tensors and results of a call. Names of batch dimensions start with `b`."""

    def __init__(self, inputs: list[Factors], outputs: list[Factors], sizes: dict[str, int]) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.sizes = sizes

    @staticmethod
    def of(call: Call, inputs: Sequence[Any], outputs: Sequence[Any]) -> Rule | None:
        """The rule of a call with abstract arrays; None if no dimension is known to be independent."""
        shapes = call.definition.shapes
        if shapes is None or not inputs:
            return None
        tensors = [*zip(call.roles(), inputs, strict=True), *zip(call.result_roles(len(outputs)), outputs, strict=True)]
        parts = [_split(call, shapes, role, t.shape) for role, t in tensors]
        if any(part is None for part in parts):
            return None
        batches = [[d for d, name in enumerate(part or []) if not name] for part in parts]
        most = max(len(batch) for batch in batches)
        sizes: dict[str, int] = {}
        for batch, (_, t) in zip(batches, tensors, strict=True):
            for k, d in enumerate(batch):
                name = f"b{most - len(batch) + k}"
                sizes[name] = max(sizes.get(name, 1), t.shape[d])
        named: list[Factors] = []
        for part, batch, (_, t) in zip(parts, batches, tensors, strict=True):
            names = list(part or [])
            for k, d in enumerate(batch):
                name = f"b{most - len(batch) + k}"
                # A dimension of size 1 is repeated for the others.
                names[d] = name if t.shape[d] == sizes[name] else f"one{len(named)}x{d}"
            named.append(names)
        return Rule(named[: len(inputs)], named[len(inputs) :], sizes)

    def text(self) -> str:
        """The rule in the notation of JAX."""
        sides = [", ".join(" ".join(names) for names in side) for side in (self.inputs, self.outputs)]
        return f"{sides[0]} -> {sides[1]}"

    def replicated(self) -> tuple[str, ...]:
        """The dimensions that every device needs completely, in the order of their first use, which Shardy requires."""
        names = dict.fromkeys(name for names in [*self.inputs, *self.outputs] for name in names)
        return tuple(name for name in names if name.startswith("c"))

    def axes(self, mesh: Any, args: Sequence[Any], results: Sequence[Any] = ()) -> dict[str, Axes]:
        """The mesh axes of each batch dimension, from the shardings of the arguments, then of the results."""
        found: dict[str, Axes] = {}
        taken: set[str] = set()
        for names, array in zip([*self.inputs, *self.outputs], [*args, *results], strict=False):
            spec = getattr(array.sharding, "spec", ())
            for name, entry in zip(names, spec, strict=False):
                if name not in self.sizes or name in found or entry is None or not isinstance(entry, str | tuple):
                    continue
                axes = (entry,) if isinstance(entry, str) else tuple(entry)
                count = 1
                for axis in axes:
                    count *= mesh.shape[axis]
                # The parts must be equal: a sum would include the padding of a shorter part.
                if axes and not taken & set(axes) and self.sizes[name] % count == 0:
                    found[name] = axes
                    taken |= set(axes)
        return found

    def shardings(self, mesh: Any, axes: dict[str, Axes]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The shardings of the arguments and of the results."""

        def of(names: Factors) -> Any:
            return NamedSharding(mesh, PartitionSpec(*[axes.get(name) for name in names]))

        return tuple(of(names) for names in self.inputs), tuple(of(names) for names in self.outputs)

    def partitioned(self, local: Callable[..., list[Any]]) -> Callable[..., tuple[Any, ...]]:
        """A function that computes `local` on each device."""

        def partition(mesh: Any, args: Any, results: Any) -> Any:
            axes = self.axes(mesh, args, results)
            inputs, outputs = self.shardings(mesh, axes)

            def part(*arrays: Any) -> tuple[Any, ...]:
                found = local(*arrays)
                return tuple(_summed(r, names, axes) for r, names in zip(found, self.outputs, strict=True))

            return mesh, part, outputs, inputs

        def infer(mesh: Any, args: Any, results: Any) -> Any:
            return self.shardings(mesh, self.axes(mesh, args))[1]

        function = custom_partitioning(lambda *arrays: tuple(local(*arrays)))
        function.def_partition(
            partition,
            infer_sharding_from_operands=infer,
            sharding_rule=self.text(),
            **({"need_replication_factors": self.replicated()} if _KNOWS_REPLICATION else {}),
        )
        return function


def _summed(part: Any, names: Factors, axes: dict[str, Axes]) -> Any:
    """The sum over the devices, if the result lacks a dimension that is divided among them."""
    over = tuple(axis for name, group in axes.items() if name not in names for axis in group)
    return jax.lax.psum(part, over) if over else part


def _split(call: Call, shapes: Shapes, role: Role, shape: tuple[int, ...]) -> Factors | None:
    """The names of the dimensions of a tensor. Those of batch dimensions are empty."""
    dims = shapes.of(role)
    if shapes.axis is not None:
        return _split_at_axes(call, shapes, role, dims, shape)
    first = len(shape) - len(dims.core)
    return [""] * first + [f"c{_word(dim)}" for dim in dims.core]


def _split_at_axes(call: Call, shapes: Shapes, role: Role, dims: Dims, shape: tuple[int, ...]) -> Factors | None:
    axis = shapes.axis
    assert axis is not None
    attributes = call.attributes
    if not dims.core and not (role.is_output and axis.keeps(attributes)):
        return [""] * len(shape)
    axes = axis.chosen(attributes, len(shape))
    word = _word(dims.core[0]) if dims.core else "kept"
    names = [""] * len(shape)
    for k, d in enumerate(axes):
        names[d] = f"c{word}axis{k}"
    return names


def _word(dim: Any) -> str:
    """A core dimension as a word: equal words for equal dimensions."""
    return "".join(c if c.isalnum() else "x" for c in str(dim))
