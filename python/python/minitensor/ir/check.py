"""The rules that an IR meets. All defects are collected, then reported together."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from . import symbols as syms
from .error import IRError
from .meta import ITEMSIZE, TensorMeta
from .node import Input, OpNode

if TYPE_CHECKING:
    from .graph import IR

__all__ = ["MAX_DEPTH", "check", "check_name", "check_op_type"]

MAX_NAME = 1024
MAX_TEXT = 2**16
MAX_RANK = 64
#: The depth of lists in attributes.
MAX_DEPTH = 8
#: The most defects that a message lists.
MAX_LISTED = 20

_OP_TYPE = re.compile(r"[A-Za-z_][\w:]*(\.[\w:]+)*", re.ASCII)
_ATTR = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def check(ir: IR) -> None:
    """Raises IRError, which lists all defects, unless the IR is well-formed."""
    found: list[str] = []
    for defect in _defects(ir):
        if len(found) == MAX_LISTED:
            found.append("…")
            break
        found.append(defect)
    if found:
        raise IRError(f"the IR {ir.name!r} is malformed:" + "".join(f"\n  - {defect}" for defect in found))


def check_name(name: object) -> str | None:
    """Returns why a text is not a name; None if it is one."""
    if not isinstance(name, str):
        return f"a name must be a text, got {type(name).__name__}"
    if not name or len(name) > MAX_NAME:
        return f"a name must have 1 to {MAX_NAME} characters, got {len(name)}"
    if not name.isprintable() or any(c.isspace() for c in name):
        return f"the name {name!r} has white space or control characters"
    return None


def check_op_type(name: object) -> str | None:
    """Returns why a text is not the name of an op; None if it is one."""
    if isinstance(name, str) and len(name) <= MAX_NAME and _OP_TYPE.fullmatch(name):
        return None
    return f"the op_type must be a name such as 'aten.add.Tensor', got {name!r}"


def _defects(ir: IR) -> Iterator[str]:
    reason = check_name(ir.name)
    if reason:
        yield f"the IR: {reason}"
    yield from _symbol_defects(ir)
    known: dict[str, TensorMeta] = {}
    later = {o.name: node.name for node in reversed(ir.nodes) for o in node.outputs}
    for kind, metas in (("input", ir.inputs), ("weight", ir.weights), ("constant", [c.meta for c in ir.constants])):
        for meta in metas:
            yield from _definition(f"{kind} {meta.name!r}", meta, known, ir)
    for constant in ir.constants:
        sizes = [s for s in constant.meta.shape if isinstance(s, int)]
        if len(sizes) != len(constant.meta.shape):
            yield f"constant {constant.name!r}: its sizes must be numbers"
        elif len(constant.data) != (expected := math.prod(sizes) * ITEMSIZE.get(constant.meta.dtype, 0)):
            yield f"constant {constant.name!r}: expected {expected} bytes, got {len(constant.data)}"
    seen: set[str] = set()
    for node in ir.nodes:
        where = f"node {node.name!r}"
        if node.name in seen:
            yield f"{where}: two nodes have this name"
        seen.add(node.name)
        reason = check_name(node.name)
        if reason:
            yield f"{where}: {reason}"
        reason = check_op_type(node.op_type)
        if reason:
            yield f"{where}: {reason}"
        yield from _references(where, "input", node.inputs, known, later)
        yield from _attributes(where, node, ir)
        for meta in node.outputs:
            yield from _definition(where, meta, known, ir)
    yield from _references("the IR", "output", ir.outputs, known, {})
    for target, value in ir.updates.items():
        if target not in {m.name for m in (*ir.inputs, *ir.weights)}:
            yield f"update of {target!r}: there is no such input or weight"
        if value not in known:
            yield f"update of {target!r}: there is no tensor {value!r}"


def _symbol_defects(ir: IR) -> Iterator[str]:
    for name, limits in ir.symbols.items():
        if not isinstance(name, str) or not _ATTR.fullmatch(name):
            yield f"symbol {name!r}: a symbol must be an identifier"
        match limits:
            case (int(least), None) if least >= 0:
                pass
            case (int(least), int(greatest)) if 0 <= least <= greatest:
                pass
            case _:
                yield f"symbol {name!r}: expected the least and the greatest value, got {limits!r}"


def _definition(where: str, meta: TensorMeta, known: dict[str, TensorMeta], ir: IR) -> Iterator[str]:
    reason = check_name(meta.name)
    if reason:
        yield f"{where}: {reason}"
        return
    if meta.name in known:
        yield f"{where}: two tensors have the name {meta.name!r}"
    known[meta.name] = meta
    if meta.dtype not in ITEMSIZE:
        expected = ", ".join(ITEMSIZE)
        yield f"{where}: tensor {meta.name!r} has the unknown dtype {meta.dtype!r}; expected one of {expected}"
    if not isinstance(meta.shape, tuple) or len(meta.shape) > MAX_RANK:
        yield f"{where}: tensor {meta.name!r} must have at most {MAX_RANK} dimensions"
        return
    for size in meta.shape:
        if isinstance(size, str):
            yield from _expression(f"{where}: tensor {meta.name!r}", size, ir)
        elif type(size) is not int or not 0 <= size <= syms.LARGEST:
            yield f"{where}: tensor {meta.name!r} has the size {size!r}; expected a number from 0, or an expression"
    numbers = [size for size in meta.shape if type(size) is int]
    if math.prod(numbers) * 16 > syms.LARGEST:
        yield f"{where}: tensor {meta.name!r} has too many elements"


def _expression(where: str, text: str, ir: IR) -> Iterator[str]:
    try:
        unknown = syms.names(text) - ir.symbols.keys()
    except IRError as error:
        yield f"{where}: {error}"
        return
    if unknown:
        yield f"{where}: the size '{text}' has unknown symbols: {', '.join(sorted(unknown))}"


def _references(
    where: str, what: str, metas: Iterable[TensorMeta], known: dict[str, TensorMeta], later: dict[str, str]
) -> Iterator[str]:
    for meta in metas:
        if meta.name not in known:
            if meta.name in later:
                reason = f"is a result of node {later[meta.name]!r}, which is not before it; the calls are a cycle, or "
                yield f"{where}: {what} {meta.name!r} {reason}out of order"
            else:
                yield f"{where}: {what} {meta.name!r} is not an input, a weight, a constant or a result of a node"
        elif known[meta.name] != meta:
            yield f"{where}: {what} {meta} differs from its definition {known[meta.name]}"


def _attributes(where: str, node: OpNode, ir: IR) -> Iterator[str]:
    for name, value in node.attrs.items():
        if not isinstance(name, str) or not _ATTR.fullmatch(name):
            yield f"{where}: the attribute name {name!r} is not an identifier"
        else:
            yield from _attribute(f"{where}: attribute '{name}'", value, node, ir, 0)


def _attribute(where: str, value: Any, node: OpNode, ir: IR, depth: int) -> Iterator[str]:
    match value:
        case None | bool() | float() | complex():
            pass
        case int():
            if abs(value) > syms.LARGEST + 1:
                yield f"{where} is {value}, which has more than 64 bits"
        case str():
            if len(value) > MAX_TEXT:
                yield f"{where} is a text of {len(value)} characters; at most {MAX_TEXT} are allowed"
        case syms.Sym(text):
            yield from _expression(where, text, ir)
        case Input(position):
            if type(position) is not int or not 0 <= position < len(node.inputs):
                yield f"{where} refers to input {position}, but the node has {len(node.inputs)}"
        case list() | tuple():
            if depth == MAX_DEPTH:
                yield f"{where} is nested more than {MAX_DEPTH} levels deep"
            else:
                for item in value:
                    yield from _attribute(where, item, node, ir, depth + 1)
        case _:
            yield (
                f"{where} is a {type(value).__name__}; expected None, bool, int, float, complex, str, Sym, Input, "
                "or a list of them"
            )
