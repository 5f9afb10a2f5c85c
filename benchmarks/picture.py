"""Draws the results as `docs/benchmarks.svg`, a bar for each row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from xml.sax.saxutils import escape

from .outcome import Outcome, geometric_mean
from .report import number
from .row import Group

MARGIN, NAMES, AXIS, NUMBERS = 24, 264, 440, 56
WIDTH = MARGIN + NAMES + AXIS + NUMBERS + MARGIN
TOP, HEAD, LINE, BAR = 124, 38, 20, 12

STYLE = """
  svg { font: 12.5px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
  .ground { fill: #ffffff } .text { fill: #1f2328 } .quiet { fill: #59636e }
  .grid { stroke: #e1e5ea } .one { stroke: #818b98 }
  .target { stroke: #1f2328; stroke-width: 1.5; stroke-dasharray: 4 3 }
  .faster { fill: #2f7fd6 } .slower { fill: #d9772b }
  .title { font-size: 17px; font-weight: 600 } .head { font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } .text { fill: #e6edf3 } .quiet { fill: #9198a1 }
    .grid { stroke: #262c36 } .one { stroke: #6e7681 } .target { stroke: #e6edf3 }
    .faster { fill: #4493e0 } .slower { fill: #e08a45 }
  }
"""


def picture(outcomes: Sequence[Outcome]) -> str:
    """Draws bars from 1 to the ratio of each row on a logarithmic axis, and a line at the target of each group."""
    shown = [outcome for outcome in outcomes if outcome.ratio is not None]
    scale = Scale([outcome.ratio for outcome in shown if outcome.ratio is not None])
    body: list[str] = []
    bottom = TOP
    for group, members in groupby(shown, key=lambda outcome: outcome.row.group):
        bottom += HEAD
        rows = list(members)
        body += heading(group, rows, bottom)
        for place, outcome in enumerate(rows):
            body += bar(outcome, bottom + place * LINE, scale)
        if group.target is not None:
            # Drawn over the bars.
            length = LINE * len(rows) + 6
            body.append(f'<path class="target" d="M{scale.at(group.target):.1f} {bottom - 4}v{length}"/>')
        bottom += LINE * len(rows)
    height = bottom + MARGIN
    head = [*title(shown), *grid(scale, bottom)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            'role="img" aria-label="The best peer\'s time divided by minitensor\'s, for each row">',
            f"<style>{STYLE}</style>",
            f'<rect class="ground" width="{WIDTH}" height="{height}" rx="8"/>',
            *head,
            *body,
            "</svg>\n",
        ]
    )


class Scale:
    """The axis of ratios. It ends at a factor of 16; longer bars are cut off, and their numbers show the ratio."""

    def __init__(self, ratios: Sequence[float]) -> None:
        self.low = max(-4, min(-2, math.floor(math.log2(min(ratios, default=1)))))
        self.high = min(4, max(3, math.ceil(math.log2(max(ratios, default=1)))))

    def at(self, ratio: float) -> float:
        place = min(max(math.log2(ratio), self.low), self.high)
        return MARGIN + NAMES + AXIS * (place - self.low) / (self.high - self.low)

    def ticks(self) -> Iterator[float]:
        return (2.0**power for power in range(self.low, self.high + 1))


def title(shown: Sequence[Outcome]) -> Iterator[str]:
    yield text(MARGIN, 36, "Speed relative to the best peer", "title text")
    about = "Time of the fastest of NumPy, PyTorch, PyTorch compiled and JAX, divided by minitensor's."
    yield text(MARGIN, 58, about, "quiet")
    if (mean := geometric_mean(shown)) is not None:
        yield text(MARGIN, 76, f"Geometric mean: {number(mean)}. Dashed lines: targets.", "quiet")


def grid(scale: Scale, bottom: int) -> Iterator[str]:
    for tick in scale.ticks():
        x = scale.at(tick)
        label = f"{tick:g}×" if tick >= 1 else f"1/{1 / tick:g}"
        yield f'<path class="{"one" if tick == 1 else "grid"}" d="M{x:.1f} {TOP - 8}V{bottom}"/>'
        yield text(x, TOP - 16, label, "quiet", "middle")


def heading(group: Group, rows: Sequence[Outcome], top: int) -> Iterator[str]:
    """Draws the name of a group and its geometric mean."""
    yield text(MARGIN, top - 9, group.name, "head text")
    if (mean := geometric_mean(rows)) is not None:
        yield text(WIDTH - MARGIN, top - 9, number(mean), "head text", "end")


def bar(outcome: Outcome, top: int, scale: Scale) -> Iterator[str]:
    ratio = outcome.ratio or 1.0
    start, end = sorted((scale.at(1), scale.at(ratio)))
    middle = top + LINE / 2
    kind = "faster" if ratio >= 1 else "slower"
    yield text(MARGIN + 12, middle + 4, outcome.row.name, "text")
    yield (
        f'<rect class="{kind}" x="{start:.1f}" y="{middle - BAR / 2:g}" width="{max(end - start, 1):.1f}" '
        f'height="{BAR}" rx="2"/>'
    )
    yield text(WIDTH - MARGIN, middle + 4, number(ratio), "text", "end")


def text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'
