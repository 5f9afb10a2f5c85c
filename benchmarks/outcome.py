"""The times of a row."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .row import Row


@dataclass(frozen=True)
class Outcome:
    """The median time in seconds of each framework that can run the row."""

    row: Row
    seconds: dict[str, float]

    @property
    def peer(self) -> str | None:
        """The fastest framework other than minitensor."""
        peers = self.seconds.keys() - {"minitensor"}
        return min(peers, key=self.seconds.__getitem__, default=None)

    @property
    def ratio(self) -> float | None:
        """The time of the fastest peer divided by minitensor's."""
        if self.peer is None or "minitensor" not in self.seconds:
            return None
        return self.seconds[self.peer] / self.seconds["minitensor"]

    @property
    def meets_target(self) -> bool | None:
        target = self.row.group.target
        return None if target is None or self.ratio is None else self.ratio >= target


def geometric_mean(outcomes: Iterable[Outcome]) -> float | None:
    logs = [math.log(outcome.ratio) for outcome in outcomes if outcome.ratio is not None]
    return math.exp(sum(logs) / len(logs)) if logs else None
