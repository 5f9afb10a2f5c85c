"""The text of the page, and the files beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from minitensor._description.markdown import aligned

import minitensor as mt

from . import speed
from .definition import Source
from .picture import picture

#: Longer formulas are left out; the definition is easier to read.
LONGEST = 900

HEAD = """# Gallery

{count} ops from papers and libraries, each defined once, in Rust. They are the plugin
[`examples/gallery`](../examples/gallery); `python examples/gallery/generate.py write` writes this page.
[defining-ops.md](defining-ops.md) explains the language.

The formulas are those of the programs that minitensor records from the definitions. The plots show the value of an
elementwise op and its derivative, or an input row of an op, its result, and the gradient of the largest element of the
result.

{speed}
"""


def files(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Returns the page and the pictures of ops, by their paths in `docs`."""
    described = [mt.ops.describe(name) for name in names]
    times = speed.read(folder)
    sources = {path: Source(folder / path) for path in sorted({_file(op) for op in described})}
    pictures = {op["name"]: drawn for op in described if (drawn := picture(op)) is not None}
    parts = [HEAD.format(count=len(described), speed=speed.summary(times)), _contents(described, sources)]
    for path, source in sources.items():
        parts.append(f"## {source.title}\n")
        parts += [_entry(op, source, pictures, times) for op in _of(described, path)]
    found = {"gallery.md": "\n".join(parts)}
    return found | {f"gallery/{name}.svg": text for name, text in pictures.items()}


def _file(op: Mapping[str, Any]) -> str:
    return op["location"].rpartition(":")[0]


def _line(op: Mapping[str, Any]) -> int:
    return int(op["location"].rpartition(":")[2])


def _of(described: Sequence[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """The ops of a file in their order."""
    return sorted((op for op in described if _file(op) == path), key=_line)


def _contents(described: Sequence[dict[str, Any]], sources: Mapping[str, Source]) -> str:
    rows = ["| field | ops |", "|---|---|"]
    for path, source in sources.items():
        links = ", ".join(f"[{op['name']}](#{op['name']})" for op in _of(described, path))
        rows.append(f"| {source.title} | {links} |")
    return "\n".join(rows) + "\n"


def _entry(op: dict[str, Any], source: Source, pictures: Mapping[str, str], times: Mapping[str, Any]) -> str:
    name = op["name"]
    parts = [f"### {name}", op["doc"], f"```rust\n{source.definition(_line(op))}\n```"]
    latex = op.get("latex", "")
    if latex and len(latex) <= LONGEST:
        parts.append(f"```math\n{aligned(latex)}\n```")
    if name in pictures:
        parts.append(f"![{name}](gallery/{name}.svg)")
    facts = [f"`{op['signature']}`", "no gradient" if op["gradient"] == "none" else f"gradient: {op['gradient']}"]
    if name in times.get("ops", {}):
        facts.append(speed.sentence(times["ops"][name]))
    return "\n\n".join([*parts, " · ".join(facts)]) + "\n"
