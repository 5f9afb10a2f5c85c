"""A drawing of lines as SVG: panels side by side, each with its own scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

#: The sizes of a panel, of the space left of it for numbers, and of the lines of text above and below.
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 190, 110, 52, 46, 26, 12

STYLE = """
  svg { font: 11px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
  .ground { fill: #ffffff } .quiet { fill: #59636e } .zero { stroke: #d1d9e0 }
  .line { fill: none; stroke-width: 1.75; stroke-linejoin: round }
  .given { stroke: #818b98 } .value { stroke: #2f7fd6 } .gradient { stroke: #d9772b }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } .quiet { fill: #9198a1 } .zero { stroke: #3d444d }
    .given { stroke: #818b98 } .value { stroke: #4493e0 } .gradient { stroke: #e08a45 }
  }
"""


class Panel(NamedTuple):
    """A line: its class in the style, its title, and its values."""

    kind: str
    title: str
    values: Sequence[float]


def drawing(call: str, x: Sequence[float], panels: Sequence[Panel]) -> str:
    """Draws panels over the same places. Values that are not finite are left out."""
    width = len(panels) * (LEFT + WIDTH) + RIGHT
    height = TOP + HEIGHT + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(call)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{width}" height="{height}" rx="6"/>',
        f'<text class="quiet" x="{LEFT}" y="18">{escape(call)}</text>',
    ]
    for number, panel in enumerate(panels):
        parts += _panel(panel, x, LEFT + number * (LEFT + WIDTH))
    return "\n".join([*parts, "</svg>\n"])


def _panel(panel: Panel, x: Sequence[float], left: int) -> list[str]:
    finite = [value for value in panel.values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    if low == high:
        low, high = low - 1, high + 1
    across = [left + WIDTH * (v - x[0]) / (x[-1] - x[0]) for v in x]
    up = [TOP + HEIGHT * (high - v) / (high - low) if math.isfinite(v) else None for v in panel.values]
    bottom, right = TOP + HEIGHT, left + WIDTH
    parts = []
    if low <= 0 <= high:
        parts.append(f'<path class="zero" d="M{left} {TOP + HEIGHT * high / (high - low):.1f}H{right}"/>')
    if x[0] <= 0 <= x[-1]:
        parts.append(f'<path class="zero" d="M{left + WIDTH * -x[0] / (x[-1] - x[0]):.1f} {TOP}V{bottom}"/>')
    parts.append(f'<path class="line {panel.kind}" d="{_path(across, up)}"/>')
    texts = [
        (left, TOP - 8, "start", panel.title),
        (left - 6, TOP + 8, "end", _number(high)),
        (left - 6, bottom, "end", _number(low)),
        (left, bottom + 16, "start", _number(x[0])),
        (right, bottom + 16, "end", _number(x[-1])),
    ]
    parts += [
        f'<text class="quiet" x="{a}" y="{b}" text-anchor="{at}">{escape(text)}</text>' for a, b, at, text in texts
    ]
    return parts


def _path(across: Sequence[float], up: Sequence[float | None]) -> str:
    """Returns the commands of a path, which begins again after a gap."""
    commands, is_drawn = [], False
    for place, value in zip(across, up, strict=True):
        if value is not None:
            commands.append(f"{'L' if is_drawn else 'M'}{place:.1f} {value:.1f}")
        is_drawn = value is not None
    return "".join(commands)


def _number(value: float) -> str:
    if 0 < abs(value) < 1e-3:
        return f"{value:.0e}"
    return f"{value:.2g}" if abs(value) < 10 else f"{value:.3g}"
