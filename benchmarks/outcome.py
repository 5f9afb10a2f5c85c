"""What a row came to."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .rows import Row


@dataclass(frozen=True)
class Outcome:
    """The median seconds of each framework that could do the row."""

    row: Row
    seconds: dict[str, float]

    @property
    def peer(self) -> str | None:
        """The fastest of the others."""
        peers = self.seconds.keys() - {"minitensor"}
        return min(peers, key=self.seconds.__getitem__, default=None)

    @property
    def ratio(self) -> float | None:
        """The best peer's time to minitensor's."""
        if self.peer is None or "minitensor" not in self.seconds:
            return None
        return self.seconds[self.peer] / self.seconds["minitensor"]

    @property
    def meets_its_aim(self) -> bool | None:
        aim = self.row.group.aim
        return None if aim is None or self.ratio is None else self.ratio >= aim


def geometric_mean(outcomes: Iterable[Outcome]) -> float | None:
    logs = [math.log(outcome.ratio) for outcome in outcomes if outcome.ratio is not None]
    return math.exp(sum(logs) / len(logs)) if logs else None
