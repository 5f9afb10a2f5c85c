"""An IR as JSON: one graph, one text."""

from __future__ import annotations

import base64
import json
import math
from typing import TYPE_CHECKING, Any

from .meta import TensorMeta
from .node import Input, OpNode, replaced
from .symbols import Sym

if TYPE_CHECKING:
    from .graph import IR

__all__ = ["FORMAT", "VERSION", "to_json"]

FORMAT = "minitensor.ir"
VERSION = 1


def to_json(ir: IR) -> str:
    """Returns the text, with one tensor or node in a line. Attributes and symbols are sorted by name."""
    ir.check()
    sections: list[tuple[str, Any]] = [
        ("format", FORMAT),
        ("version", VERSION),
        ("name", ir.name),
        ("symbols", {name: list(ir.symbols[name]) for name in sorted(ir.symbols)}),
        ("inputs", [_meta(m) for m in ir.inputs]),
        ("weights", [_meta(m) for m in ir.weights]),
        ("constants", [_meta(c.meta) | {"data": base64.b64encode(c.data).decode()} for c in ir.constants]),
        ("nodes", [_node(n) for n in ir.nodes]),
        ("outputs", [m.name for m in ir.outputs]),
        ("updates", {name: ir.updates[name] for name in sorted(ir.updates)}),
    ]
    return "{\n" + ",\n".join(f"{_dump(name)}: {_section(value)}" for name, value in sections) + "\n}\n"


def _section(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(_dump(item) for item in value) + "\n]"
    return _dump(value)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _meta(meta: TensorMeta) -> dict[str, Any]:
    return {"name": meta.name, "dtype": meta.dtype, "shape": list(meta.shape)}


def _node(node: OpNode) -> dict[str, Any]:
    return {
        "name": node.name,
        "op_type": node.op_type,
        "inputs": [m.name for m in node.inputs],
        "outputs": [_meta(m) for m in node.outputs],
        "attrs": {name: replaced(node.attrs[name], _item) for name in sorted(node.attrs)},
    }


def _item(value: Any) -> Any:
    match value:
        case Sym(text):
            return {"sym": text}
        case Input(position):
            return {"input": position}
        case complex():
            return {"complex": [_item(value.real), _item(value.imag)]}
        case float() if not math.isfinite(value):
            return {"float": repr(float(value))}
    return value
