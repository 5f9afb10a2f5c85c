"""`python -m minitensor model …`: what a file contains."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any

from .._minitensor import Tensor
from ..testing import counted
from . import manifest, safetensors, states
from .manifest import Manifest

__all__ = ["COMMANDS", "inspect", "run"]

#: The arguments of each command, and its description.
COMMANDS = {
    "model inspect FILE": "show the graphs, tensors and ops of a file of mt.save, without running or registering "
    "anything",
}


def run(arguments: list[str]) -> int | None:
    """Runs a command and returns its exit status, or `None` if the arguments are invalid."""
    match arguments:
        case ["inspect", file]:
            print(inspect(file))
            return 0
    return None


def inspect(path: str) -> str:
    """Returns a description of a file."""
    metadata, tensors = safetensors.read(path)
    lines = [f"file        {path} ({os.path.getsize(path):,} bytes)"]
    if manifest.KEY in metadata:
        lines += _model(manifest.read(path, metadata, tensors), tensors)
    elif states.KEY in metadata:
        lines += ["content     state", *_table(_row(name, t, "") for name, t in tensors.items())]
    else:
        lines += ["content     tensors", *_table(_row(name, t, "") for name, t in tensors.items())]
    return "\n".join(lines)


def _model(model: Manifest, tensors: dict[str, Tensor]) -> list[str]:
    parameters = sum(
        _numel(tensors[name]) for name, i in model.tensors.items() if not i.same_as and i.kind == "parameter"
    )
    lines = [
        f"content     model, written by minitensor {model.minitensor}",
        f"parameters  {parameters:,}",
        "",
        counted(len(model.branches), "graph"),
    ]
    for branch in model.branches:
        ops = Counter(node.op_type for node in branch.ir.nodes)
        lines.append(f"  {branch.ir.name}{branch}")
        lines += [f"    {count:>5} × {op}" for op, count in ops.most_common()]
    lines += ["", counted(len(model.tensors), "tensor")]
    rows = []
    for name, info in model.tensors.items():
        kind = f"the same as {info.same_as}" if info.same_as else info.kind + ("" if info.requires_grad else ", fixed")
        rows.append(
            _row(name, tensors[info.same_as or name], kind if info.kind == "parameter" or info.same_as else info.kind)
        )
    lines += _table(rows)
    if model.ops:
        lines += ["", f"{counted(len(model.ops), 'op')} with programs"]
        for text in model.ops:
            op = json.loads(text)
            lines.append(
                f"  {op['name']}  {op['kind']} op, gradient: {op['gradient']['kind']}, "
                f"{counted(len(op['programs']), 'program')}"
            )
    if model.missing:
        lines += ["", f"{counted(len(model.missing), 'op')} without a program"]
        for missing in model.missing:
            source = f"plugin {missing.plugin} {missing.version}" if missing.plugin else "defined in Python"
            lines.append(f"  {missing.signature}  {source}: {missing.reason}")
    return lines


def _numel(t: Tensor) -> int:
    count = 1
    for size in t.shape:
        count *= size
    return count


def _row(name: str, t: Tensor, kind: str) -> list[str]:
    return [name, t.dtype.name, str(tuple(t.shape)), kind]


def _table(rows: Any) -> list[str]:
    rows = list(rows)
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
