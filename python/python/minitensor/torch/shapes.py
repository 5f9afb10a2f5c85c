"""The rules for shapes and dtypes, for sizes that may be symbolic."""

from __future__ import annotations

from typing import Any

import torch

from .._minitensor import Tensor, _array_function, _infer, _infer_dtypes, ones
from .definition import DTYPES, NAMES, Definition

#: A size: an integer, or a symbol.
Size = Any
Shape = tuple[Size, ...]


def results(
    op: Definition, tensors: list[torch.Tensor | None], attrs: dict[str, Any]
) -> list[tuple[Shape, torch.dtype]]:
    """The shapes and dtypes of the results of a call. Symbolic sizes stay symbolic if the op has a rule for shapes."""
    shapes = [None if t is None else tuple(t.shape) for t in tensors]
    dtypes = [None if t is None else NAMES[t.dtype] for t in tensors]
    is_symbolic = any(not isinstance(n, int) for shape in shapes if shape is not None for n in shape)
    if is_symbolic and op.shape[0] != "inferred":
        found = _infer_dtypes(op.name, dtypes, attrs)
        return [(s, DTYPES[d]) for s, d in zip(symbolic(op, shapes, attrs), found, strict=True)]
    # Without a rule, the graph is compiled for these sizes.
    metas = [None if t is None else (tuple(int(n) for n in t.shape), NAMES[t.dtype]) for t in tensors]
    try:
        return [(shape, DTYPES[dtype]) for shape, dtype in _infer(op.name, metas, attrs)]
    except NotImplementedError:
        return value_dependent(op, metas, attrs)


def value_dependent(op: Definition, metas: list[Any], attrs: dict[str, Any]) -> list[tuple[Shape, torch.dtype]]:
    """The shapes and dtypes of the results of an op that reads values to determine them: all sizes are new symbols.

    The number of dimensions is that for a call with ones.
    """
    context = torch.library.get_ctx()
    made = [None if meta is None else ones(meta[0], dtype=meta[1]) for meta in metas]
    found = _array_function(op.name)(*op.nested(made), **attrs)
    tensors = [found] if isinstance(found, Tensor) else found
    return [(tuple(context.new_dynamic_size() for _ in t.shape), DTYPES[str(t.dtype)]) for t in tensors]


def symbolic(op: Definition, shapes: list[Shape | None], attrs: dict[str, Any]) -> list[Shape]:
    """The shapes of the results by the op's rule."""
    if op.shape[0] == "broadcast":
        return [broadcast([s for s in shapes if s is not None])] * len(op.outputs)
    _, inputs, outputs, axis = op.shape
    attrs = {a.name: a.default for a in op.attrs} | attrs
    # Each tensor of a list has the rule of the last input.
    rules = [inputs[min(k, len(inputs) - 1)] for k in range(len(shapes))]
    given = [(rule, shape) for rule, shape in zip(rules, shapes, strict=True) if shape is not None]
    if axis is None:
        return at_last_axes(op, given, outputs, attrs)
    attribute, keepdims, _ = axis
    keeps = keepdims is not None and attrs[keepdims]
    rank = max(len(shape) for (has_batch, dims), shape in given if has_batch and dims)
    chosen = attrs[attribute]
    axes = range(rank) if chosen is None else [chosen] if isinstance(chosen, int) else chosen
    core = sorted(k % rank for k in axes) if rank else []
    if len(core) != 1:
        # The core is one dimension of several axes. It is removed, or its sizes stay.
        shape = broadcast([shape for (has_batch, dims), shape in given if has_batch and dims])
        return [
            tuple(n if dims or k not in core else 1 for k, n in enumerate(shape) if dims or keeps or k not in core)
            for _, dims in outputs
        ]
    # The rule has the chosen axis last.
    last = [(rule, moved(shape, core[0], -1) if rule[0] and rule[1] else shape) for rule, shape in given]
    results = []
    for (_, dims), shape in zip(outputs, at_last_axes(op, last, outputs, attrs), strict=True):
        whole = shape if dims else (*shape, 1)
        restored = moved(whole, -1, core[0])
        results.append(restored if dims or keeps else shape)
    return results


def moved(shape: Shape, source: int, target: int) -> Shape:
    """The shape with one dimension at another place."""
    sizes = list(shape)
    size = sizes.pop(source)
    sizes.insert(target % len(shape), size)
    return tuple(sizes)


def at_last_axes(op: Definition, given: list[tuple[Any, Shape]], outputs: Any, attrs: dict[str, Any]) -> list[Shape]:
    """The shapes of the results, given the rules and shapes of the tensors."""
    sizes: dict[str, Size] = {}
    batches = []
    for (has_batch, dims), shape in given:
        first = len(shape) - len(dims)
        if first < 0 or (first > 0 and not has_batch):
            least = "at least " if has_batch else ""
            raise ValueError(f"op '{op.name}' takes a tensor of {least}{len(dims)} dimensions, got shape {shape}")
        batches.append(shape[:first])
        for dim, size in zip(dims, shape[first:], strict=True):
            bind(op, sizes, dim, size, attrs)
    batch = broadcast(batches)
    return [
        (batch if has_batch else ()) + tuple(value(sizes, dim, attrs) for dim in dims) for has_batch, dims in outputs
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
