"""An IR in the language of Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graph import IR

__all__ = ["to_dot"]


def to_dot(ir: IR) -> str:
    """Returns the graph. Calls are boxes, inputs and outputs ellipses; weights are in the label of the call."""
    lines = ["digraph ir {", "  node [shape=box];"]
    weights = {meta.name for meta in (*ir.weights, *(constant.meta for constant in ir.constants))}
    sources: dict[str, str] = {}
    for i, meta in enumerate(ir.inputs):
        sources[meta.name] = f"input{i}"
        lines.append(f"  input{i} [shape=ellipse, label={_quoted(str(meta))}];")
    for i, node in enumerate(ir.nodes):
        own = [meta.name for meta in node.inputs if meta.name in weights]
        label = "\n".join([node.op_type, *own, *map(str, node.outputs)])
        lines.append(f"  node{i} [label={_quoted(label)}];")
        edges = [sources[meta.name] for meta in node.inputs if meta.name in sources]
        lines += [f"  {source} -> node{i};" for source in dict.fromkeys(edges)]
        sources |= {meta.name: f"node{i}" for meta in node.outputs}
    for i, meta in enumerate(ir.outputs):
        lines.append(f"  output{i} [shape=ellipse, label={_quoted(meta.name)}];")
        if meta.name in sources:
            lines.append(f"  {sources[meta.name]} -> output{i};")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
