"""Changes of shape."""

from __future__ import annotations

from ....ir import Sym
from ..builder import Value
from ..call import Call
from ..rule import rule
from . import regions

__all__: list[str] = []


@rule("reshape", "flatten", only_moves=True)
def reshape(call: Call) -> Value:
    shape = call.attrs.get("shape")
    # The sizes of the result; or those of the caller, in which −1 is unknown.
    if shape is None or any(isinstance(size, Sym) for size in shape) or -1 not in shape or 0 in shape:
        shape = call.outputs[0].shape
    allow_zero = 1 if any(size == 0 for size in shape) else None
    return call.builder.node("Reshape", call["x"], call.sizes_to_reshape(shape), allowzero=allow_zero)


@rule("squeeze", only_moves=True)
def squeeze(call: Call) -> Value:
    x = call["x"]
    assert x.shape is not None
    given = call.plain("axis")
    axes = (
        [k for k, n in enumerate(x.shape) if n == 1] if given is None else sorted(set(call.axes("axis", len(x.shape))))
    )
    return call.builder.node("Squeeze", x, call.builder.integers(axes)) if axes else call["x"].apply("Identity")


@rule("unsqueeze", only_moves=True)
def unsqueeze(call: Call) -> Value:
    return call.builder.node("Unsqueeze", call["x"], call.builder.integers([call.plain("axis")]))


@rule("expand", only_moves=True)
def expand(call: Call) -> Value:
    return call.builder.node("Expand", call["x"], call.sizes_of_result())


@rule("permute_dims", "transpose", "matrix_transpose", "moveaxis", only_moves=True)
def transpose(call: Call) -> Value:
    x = call["x"]
    assert x.shape is not None
    return call.builder.node("Transpose", x, perm=regions.order(call, len(x.shape)))


@rule("flip", only_moves=True)
def flip(call: Call) -> Value:
    x = call["x"]
    assert x.shape is not None
    rank = len(x.shape)
    given = call.plain("axis")
    # An axis that is listed twice is reversed twice.
    listed = list(range(rank)) if given is None else [a % rank for a in given]
    axes = [a for a in sorted(set(listed)) if listed.count(a) % 2]
    if not axes:
        return call["x"].apply("Identity")
    many, b = len(axes), call.builder
    return b.node(
        "Slice", x, b.integers([-1] * many), b.integers([-(2**63)] * many), b.integers(axes), b.integers([-1] * many)
    )


@rule("roll", only_moves=True)
def roll(call: Call) -> Value:
    x, b = call["x"], call.builder
    assert x.shape is not None
    axis, shift = call.axis("axis", len(x.shape)), call.plain("shift")
    size = x.shape[axis]
    if size == 0:
        return call["x"].apply("Identity")
    if isinstance(size, int):
        cut = b.integers([(-shift) % size])
    else:
        cut = b.integers([-shift]).apply("Mod", call.graph.size(size))
    ends, at = b.integers([2**63 - 1]), b.integers([axis])
    return b.concat([b.node("Slice", x, cut, ends, at), b.node("Slice", x, b.integers([0]), cut, at)], axis)
