"""Facts about an op, as pairs of a name and a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def facts(description: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns the facts that a page shows below the documentation of an op."""
    rows = [
        ("shape", description["shape_rule"]),
        ("dtypes", _dtypes(description)),
        ("properties", description["properties"]),
        ("gradient", description["gradient"]),
        ("aliases", ", ".join(description["aliases"])),
        ("program", description.get("program", "")),
        ("LaTeX", description.get("latex", "")),
        ("plugin", description["plugin"] or ""),
        ("defined at", description["location"]),
    ]
    return [(name, text) for name, text in rows if text]


def _dtypes(description: Mapping[str, Any]) -> str:
    """Returns the dtypes of each variable, or those of the inputs if there is none."""
    variables = [f"{name}: {', '.join(dtypes)}" for name, dtypes in description["dtypes"].items()]
    inputs = [f"{i['name']}: {i['dtypes']}" for i in description["inputs"]]
    return "\n".join(variables or inputs)
