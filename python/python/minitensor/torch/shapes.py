"""The rules for shapes and dtypes, for sizes that may be symbolic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._definitions import Dims, Role
from .._minitensor import Tensor, _array_function, _infer, _infer_dtypes, ones
from . import fakes
from .definition import DTYPES, NAMES, Definition

#: A size: an integer, or a symbol.
Size = Any
Shape = tuple[Size, ...]


def results(
    op: Definition, tensors: list[torch.Tensor | None], attrs: dict[str, Any]
) -> list[tuple[Shape, torch.dtype]]:
    """The shapes and dtypes of the results of a call. Symbolic sizes stay symbolic if the op has a rule for shapes."""
    shapes = [None if t is None else tuple(t.shape) for t in tensors]
    if any(map(is_symbolic, [*shapes, *attrs.values()])):
        symbols = symbolic_results(op, tensors, shapes, attrs)
        if symbols is not None:
            return symbols
    # Without a rule, the graph is compiled for these sizes.
    attrs = numbers(attrs, int)
    metas = [None if t is None else (tuple(int(n) for n in t.shape), NAMES[t.dtype]) for t in tensors]
    try:
        return [(shape, DTYPES[dtype]) for shape, dtype in _infer(op.name, metas, attrs)]
    except NotImplementedError:
        return value_dependent(op, metas, attrs)


def symbolic_results(
    op: Definition, tensors: list[torch.Tensor | None], shapes: list[Shape | None], attrs: dict[str, Any]
) -> list[tuple[Shape, torch.dtype]] | None:
    """The shapes and dtypes of the results for symbolic sizes; None if the op has no rule for them."""
    known = numbers(attrs, seen)
    if op.shapes is not None:
        found = dtypes_of(op, tensors, known)
        return [(s, DTYPES[d]) for s, d in zip(symbolic(op, shapes, attrs), found, strict=True)]
    fake = fakes.find(op.name)
    if fake is None:
        return None
    try:
        expected = inferred(op, tensors, known)
    except NotImplementedError:
        return None
    of_fake = fakes.shapes(op.name, fake, op.nested(tensors), op.complete(attrs))
    if of_fake is None:
        return None
    here, ours = [tuple(map(seen, shape)) for shape in of_fake], [shape for shape, _ in expected]
    if here != ours:
        fakes.report(op.name, f"it gave {here}, the op gives {ours}")
        return None
    return [(shape, DTYPES[dtype]) for shape, (_, dtype) in zip(of_fake, expected, strict=True)]


def is_symbolic(sizes: Any) -> bool:
    """Whether a shape or an attribute has a symbol."""
    return isinstance(sizes, torch.SymInt) or (isinstance(sizes, list | tuple) and any(map(is_symbolic, sizes)))


def numbers(attrs: dict[str, Any], number: Callable[[Size], int]) -> dict[str, Any]:
    """The attributes with a number for each symbol."""

    def without_symbols(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [without_symbols(v) for v in value]
        return number(value) if isinstance(value, torch.SymInt) else value

    return {name: without_symbols(value) for name, value in attrs.items()}


def dtypes_of(op: Definition, tensors: list[torch.Tensor | None], attrs: dict[str, Any]) -> list[str]:
    """The dtypes of the results. If only the body knows them, it runs without values at sizes that were seen."""
    dtypes = [None if t is None else NAMES[t.dtype] for t in tensors]
    try:
        return _infer_dtypes(op.name, dtypes, attrs)
    except NotImplementedError:
        return [dtype for _, dtype in inferred(op, tensors, attrs)]


def inferred(
    op: Definition, tensors: list[torch.Tensor | None], attrs: dict[str, Any]
) -> list[tuple[tuple[int, ...], str]]:
    """The shapes and dtypes of the results for sizes that were seen."""
    metas = [None if t is None else (tuple(map(seen, t.shape)), NAMES[t.dtype]) for t in tensors]
    return _infer(op.name, metas, attrs)


#: What stands for a size that is known only when the graph runs.
_UNKNOWN = 64


def seen(size: Size) -> int:
    """The size in the call that is compiled. No guard is added."""
    if isinstance(size, int):
        return size
    node = size.node
    if node.hint is not None:
        return int(node.hint)
    env = node.shape_env
    # Earlier versions of PyTorch have the second name only.
    known = env.backed_var_to_val if hasattr(env, "backed_var_to_val") else env.var_to_val
    return int(node.expr.xreplace({s: known.get(s, _UNKNOWN) for s in node.expr.free_symbols}))


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
    assert op.shapes is not None
    axis, attrs = op.shapes.axis, op.complete(attrs)
    if axis is not None:
        # A graph is for fixed axes, even if they are arguments of the compiled function.
        attrs |= numbers({axis.attribute: attrs[axis.attribute]}, int)
    outputs = [op.shapes.of(Role(True, k)) for k in range(len(op.outputs))]
    given = [(op.shapes.of(Role(False, k)), shape) for k, shape in enumerate(shapes) if shape is not None]
    if axis is None:
        return at_last_axes(op, given, outputs, attrs)
    rows = [shape for dims, shape in given if dims.has_batch and dims.core]
    core, keeps = axis.chosen(attrs, max(len(shape) for shape in rows)), axis.keeps(attrs)
    if len(core) != 1:
        # The core is one dimension of several axes. It is removed, or its sizes stay.
        shape = broadcast(rows)
        return [
            tuple(
                n if dims.core or k not in core else 1
                for k, n in enumerate(shape)
                if dims.core or keeps or k not in core
            )
            for dims in outputs
        ]
    # The rule has the chosen axis last.
    last = [(dims, moved(shape, core[0], -1) if dims.has_batch and dims.core else shape) for dims, shape in given]
    results = []
    for dims, shape in zip(outputs, at_last_axes(op, last, outputs, attrs), strict=True):
        whole = shape if dims.core else (*shape, 1)
        results.append(moved(whole, -1, core[0]) if dims.core or keeps else shape)
    return results


def moved(shape: Shape, source: int, target: int) -> Shape:
    """The shape with one dimension at another place."""
    sizes = list(shape)
    size = sizes.pop(source)
    sizes.insert(target % len(shape), size)
    return tuple(sizes)


def at_last_axes(
    op: Definition, given: list[tuple[Dims, Shape]], outputs: list[Dims], attrs: dict[str, Any]
) -> list[Shape]:
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
