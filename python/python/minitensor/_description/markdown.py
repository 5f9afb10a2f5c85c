"""The description of an op as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .facts import facts


def markdown(description: Mapping[str, Any]) -> str:
    """Returns the page of an op for a notebook."""
    parts = [f"**`{description['signature']}`**", description["doc"]]
    if latex := description.get("latex"):
        parts.append(f"$$\n{aligned(latex)}\n$$")
    rows = [(name, value) for name, value in facts(description) if name not in ("LaTeX", "program")]
    # A list, because the text of a table must not contain `|`.
    parts.append("\n".join(f"- {name}: `{'`, `'.join(value.splitlines())}`" for name, value in rows))
    return "\n\n".join(parts)


def aligned(latex: str) -> str:
    """Returns equations of several lines aligned to the left."""
    return latex if "\n" not in latex else "\\begin{array}{l}\n" + latex + "\n\\end{array}"
