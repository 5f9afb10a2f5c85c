"""The differences between two IRs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .node import OpNode

if TYPE_CHECKING:
    from .graph import IR

__all__ = ["diff"]


def diff(a: IR, b: IR) -> list[str]:
    """Returns the differences, one in a line: `-` is only in the first IR, `+` only in the second, `~` differs."""
    return list(_lines(a, b))


def _lines(a: IR, b: IR) -> Iterator[str]:
    if a.name != b.name:
        yield f"~ name: {a.name} -> {b.name}"
    yield from _entries("symbol", a.symbols, b.symbols)
    for kind in ("inputs", "weights", "constants"):
        before, after = ({item.name: item for item in getattr(ir, kind)} for ir in (a, b))
        yield from _entries(kind[:-1], before, after)
        yield from _order(kind, list(before), list(after))
    before, after = ({node.name: node for node in ir.nodes} for ir in (a, b))
    yield from _entries("node", before, after)
    yield from _order("nodes", list(before), list(after))
    yield from _entries("update", a.updates, b.updates)
    if a.outputs != b.outputs:
        yield f"~ outputs: {', '.join(map(str, a.outputs))} -> {', '.join(map(str, b.outputs))}"


def _entries(kind: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"- {kind} {_shown(name, item)}" for name, item in a.items() if name not in b)
    yield from (f"+ {kind} {_shown(name, item)}" for name, item in b.items() if name not in a)
    for name, item in a.items():
        if name in b and not _are_equal(item, b[name]):
            if isinstance(item, OpNode):
                yield from _calls(item, b[name])
            else:
                yield f"~ {kind} {_shown(name, item)} -> {_shown(name, b[name])}"


def _order(kind: str, a: list[str], b: list[str]) -> Iterator[str]:
    if a != b and sorted(a) == sorted(b):
        yield f"~ {kind} are in another order"


def _calls(a: OpNode, b: OpNode) -> Iterator[str]:
    where = f"~ node {a.name}"
    if a.op_type != b.op_type:
        yield f"{where}: op_type {a.op_type} -> {b.op_type}"
    for kind in ("inputs", "outputs"):
        before, after = (", ".join(map(str, getattr(node, kind))) for node in (a, b))
        if before != after:
            yield f"{where}: {kind} {before or 'none'} -> {after or 'none'}"
    for name in dict.fromkeys([*a.attrs, *b.attrs]):
        before, after = (repr(n.attrs[name]) if name in n.attrs else "nothing" for n in (a, b))
        if before != after:
            yield f"{where}: {name} {before} -> {after}"


def _are_equal(a: Any, b: Any) -> bool:
    # Texts, since 1 equals True and 1.0.
    return repr(a) == repr(b)


def _shown(name: str, item: Any) -> str:
    match item:
        case OpNode():
            return str(item)
        case (least, most):
            return f"{name}: {least} to {most}"
        case str():
            return f"{name} = {item}"
    return str(getattr(item, "meta", item))
