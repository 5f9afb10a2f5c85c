"""The description of an op as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from .curve import Curve, curve
from .facts import facts
from .text_plot import plot

WIDTH = 88
#: The number of dot columns of a plot.
COLUMNS = 72


def text(description: Mapping[str, Any]) -> str:
    """Returns the page of an op."""
    lines = [description["signature"], "", *_wrapped(description["doc"]), ""]
    rows = facts(description)
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        lines += _block(name, value, width)
    drawn = curve(description, COLUMNS)
    if drawn is not None:
        lines += ["", *_plots(drawn)]
    return "\n".join(lines)


def _block(name: str, value: str, width: int) -> Iterator[str]:
    """Yields a fact; its further lines are below its first."""
    for number, line in enumerate(value.splitlines()):
        yield f"{name if number == 0 else '':<{width}}  {line}"


def _wrapped(doc: str) -> list[str]:
    return [line for part in doc.split("\n\n") for line in [*textwrap.wrap(part, WIDTH), ""]][:-1]


def _plots(drawn: Curve) -> Iterator[str]:
    curves = [(drawn.call, drawn.value)]
    if drawn.derivative is not None:
        curves.append(("its derivative", drawn.derivative))
    for title, values in curves:
        yield title
        yield from plot(values)
    yield f"from {drawn.x[0]:g} to {drawn.x[-1]:g}"
