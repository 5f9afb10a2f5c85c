"""A drawing of one or two lines as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 28, 24

STYLE = """
  svg { font: 11px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
  .ground { fill: #ffffff } .quiet { fill: #59636e } .zero { stroke: #d1d9e0 }
  .line { fill: none; stroke-width: 1.75; stroke-linejoin: round }
  .given { stroke: #afb8c1 } .value { stroke: #2f7fd6 } .gradient { stroke: #d9772b; stroke-dasharray: 5 3 }
  .of-given { fill: #818b98 } .of-value { fill: #2f7fd6 } .of-gradient { fill: #d9772b }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } .quiet { fill: #9198a1 } .zero { stroke: #3d444d }
    .given { stroke: #59636e } .value { stroke: #4493e0 } .gradient { stroke: #e08a45 }
    .of-value { fill: #4493e0 } .of-gradient { fill: #e08a45 }
  }
"""

#: A line: its class, its name, and its values.
Line = tuple[str, str, Sequence[float]]


def drawing(x: Sequence[float], lines: Sequence[Line]) -> str:
    """Draws lines over the same places. Parts that are not finite are left out."""
    values = [v for _, _, line in lines for v in line if math.isfinite(v)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low == high:
        low, high = low - 1, high + 1

    def across(v: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (v - x[0]) / (x[-1] - x[0])

    def up(v: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (v - low) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
    ]
    if low <= 0 <= high:
        parts.append(f'<path class="zero" d="M{LEFT} {up(0):.1f}H{WIDTH - RIGHT}"/>')
    if x[0] <= 0 <= x[-1]:
        parts.append(f'<path class="zero" d="M{across(0):.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
    for kind, _, line in reversed(lines):
        parts.append(f'<path class="line {kind}" d="{_path(x, line, across, up)}"/>')
    for value, at in ((high, TOP + 8), (low, HEIGHT - BOTTOM)):
        parts.append(f'<text class="quiet" x="{LEFT - 6}" y="{at}" text-anchor="end">{value:.3g}</text>')
    for value, at, anchor in ((x[0], LEFT, "start"), (x[-1], WIDTH - RIGHT, "end")):
        parts.append(f'<text class="quiet" x="{at}" y="{HEIGHT - 8}" text-anchor="{anchor}">{value:.3g}</text>')
    names = "".join(f'<tspan class="of-{kind}" dx="{12 * (n > 0)}">{escape(name)}</tspan>' for n, (kind, name, _) in enumerate(lines))
    parts.append(f'<text x="{LEFT}" y="18">{names}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _path(x: Sequence[float], line: Sequence[float], across, up) -> str:  # type: ignore[no-untyped-def]
    """The commands of a path, which begins again after a gap."""
    commands, drawn = [], False
    for place, value in zip(x, line, strict=True):
        finite = math.isfinite(value)
        if finite:
            commands.append(f"{'L' if drawn else 'M'}{across(place):.1f} {up(value):.1f}")
        drawn = finite
    return "".join(commands)
