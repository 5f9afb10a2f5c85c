"""Plots in text: a curve of Braille dots."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: The dots of a character, two columns and four rows, as bits of its code.
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
BLANK = 0x2800


def plot(values: Sequence[float], height: int = 8) -> list[str]:
    """Draws one dot column for each value, in lines. The first and the last line begin with the bounds of the values.

    Values that are not finite are left out. The height is at least 2.
    """
    finite = [v for v in values if math.isfinite(v)]
    if not finite:
        return []
    low, high = min(finite), max(finite)
    cells = [[BLANK] * ((len(values) + 1) // 2) for _ in range(height)]
    last = 4 * height - 1
    before: int | None = None
    for column, value in enumerate(values):
        if not math.isfinite(value):
            before = None
            continue
        at = last - round(last * ((value - low) / (high - low) if high > low else 0.5))
        # Steep parts are drawn without gaps.
        start = at if before is None or abs(before - at) < 2 else before + (1 if at > before else -1)
        for row in range(min(start, at), max(start, at) + 1):
            cells[row // 4][column // 2] |= DOTS[column % 2][row % 4]
        before = at
    bounds = [f"{high:.3g}", *[""] * (height - 2), f"{low:.3g}"]
    width = max(map(len, bounds))
    lines = ["".join(map(chr, line)).rstrip(chr(BLANK)) for line in cells]
    return [f"{bound:>{width}} ┤{line}" for bound, line in zip(bounds, lines, strict=True)]
