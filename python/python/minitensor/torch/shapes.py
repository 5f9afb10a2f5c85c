"""The rules for shapes and dtypes, for sizes that may be symbolic."""

from __future__ import annotations

from typing import Any

import torch

from .._minitensor import _infer, _infer_dtypes
from .definition import DTYPES, NAMES, Definition

#: A size: an integer, or a symbol.
Size = Any
Shape = tuple[Size, ...]


def results(
    op: Definition, tensors: list[torch.Tensor | None], attrs: dict[str, Any]
) -> list[tuple[Shape, torch.dtype]]:
    """The shapes and dtypes of the results of a call. Symbolic sizes stay symbolic if the op has a rule for shapes."""
    shapes = [None if t is None else tuple(t.shape) for t in tensors]
    is_symbolic = any(not isinstance(n, int) for shape in shapes if shape is not None for n in shape)
    if is_symbolic and op.shape[0] != "inferred":
        dtypes = _infer_dtypes(op.name, [None if t is None else NAMES[t.dtype] for t in tensors], attrs)
        return [(s, DTYPES[d]) for s, d in zip(symbolic(op, shapes, attrs), dtypes, strict=True)]
    # Without a rule, the graph is compiled for these sizes.
    metas = [None if t is None else (tuple(int(n) for n in t.shape), NAMES[t.dtype]) for t in tensors]
    return [(shape, DTYPES[dtype]) for shape, dtype in _infer(op.name, metas, attrs)]


def symbolic(op: Definition, shapes: list[Shape | None], attrs: dict[str, Any]) -> list[Shape]:
    """The shapes of the results by the op's rule."""
    if op.shape[0] == "broadcast":
        shape = broadcast([s for s in shapes if s is not None])
        return [shape] * len(op.outputs)
    _, inputs, outputs, axis = op.shape
    attrs = {a.name: a.default for a in op.attrs} | attrs
    # Of a list, each tensor has the rule of the last input.
    rules = [inputs[min(k, len(inputs) - 1)] for k in range(len(shapes))]
    given = [(rule, shape) for rule, shape in zip(rules, shapes, strict=True) if shape is not None]
    if axis is not None:
        return along_axes(op, given, attrs)
    sizes: dict[str, Size] = {}
    batches = []
    for (has_batch, dims), shape in given:
        first = len(shape) - len(dims)
        if first < 0 or (first > 0 and not has_batch):
            expected = f"{len(dims)} dimensions" if not has_batch else f"at least {len(dims)} dimensions"
            raise ValueError(f"op '{op.name}' takes a tensor of {expected}, got the shape {shape}")
        batches.append(shape[:first])
        for dim, size in zip(dims, shape[first:], strict=True):
            bind(op, sizes, dim, size, attrs)
    batch = broadcast(batches)
    return [
        (batch if has_batch else ()) + tuple(value(sizes, dim, attrs) for dim in dims) for has_batch, dims in outputs
    ]


def along_axes(op: Definition, given: list[tuple[Any, Shape]], attrs: dict[str, Any]) -> list[Shape]:
    """The shapes of the results of an op whose caller chooses the axes of the core."""
    _, _, outputs, (attribute, keepdims, _) = op.shape
    shape, core_dims = next((shape, dims) for (has_batch, dims), shape in given if has_batch and dims)
    rank, chosen = len(shape), attrs[attribute]
    axes = range(rank) if chosen is None else [chosen] if isinstance(chosen, int) else chosen
    core = {axis % rank for axis in axes} if rank else set()
    sizes = {core_dims[0]: shape[next(iter(core))]} if len(core) == 1 else {}

    def along(axis: int, dims: list[Any]) -> Size:
        if axis not in core or (dims and not sizes):
            return shape[axis]
        return value(sizes, dims[0], attrs) if dims else 1

    keeps = keepdims is not None and attrs[keepdims]
    return [
        tuple(along(axis, dims) for axis in range(rank) if axis not in core or dims or keeps) for _, dims in outputs
    ]


def broadcast(shapes: list[Shape]) -> Shape:
    """The common shape to which shapes broadcast."""
    return tuple(torch.broadcast_shapes(*shapes)) if shapes else ()


def bind(op: Definition, sizes: dict[str, Size], dim: Any, size: Size, attrs: dict[str, Any]) -> None:
    """Binds the name of a dimension, or checks a dimension that is known."""
    if isinstance(dim, str) and dim not in sizes:
        sizes[dim] = size
        return
    expected = value(sizes, dim, attrs)
    torch._check_value(size == expected, lambda: f"op '{op.name}': expected size {expected} for {dim}, got {size}")


def value(sizes: dict[str, Size], dim: Any, attrs: dict[str, Any]) -> Size:
    """The size of a dimension."""
    match dim:
        case int():
            return dim
        case str():
            return sizes[dim]
        case ("attr", name):
            return attrs[name]
        case ("+", a, b):
            return value(sizes, a, attrs) + value(sizes, b, attrs)
        case ("-", a, b):
            return value(sizes, a, attrs) - value(sizes, b, attrs)
        case ("*", a, b):
            return value(sizes, a, attrs) * value(sizes, b, attrs)
        case (_, a, b):
            return value(sizes, a, attrs) // value(sizes, b, attrs)
