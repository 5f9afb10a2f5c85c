"""What came of it, as lines on a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence

from .frameworks import FRAMEWORKS
from .machine import Machine
from .outcome import Outcome, geometric_mean
from .rows import MEAN_AIM, Group

NAME, NUMBER = 45, 10


def heading(machine: Machine) -> list[str]:
    """The machine, the versions, and what belongs to no row."""
    versions = ", ".join(f"{FRAMEWORKS[n].title} {v}" for n, v in machine.versions.items() if n != "inductor")
    imports = ", ".join(f"{FRAMEWORKS[n].title} {s * 1e3:.0f} ms" for n, s in machine.imports.items())
    lines = [
        f"{machine.processor}, {machine.threads} cores, {machine.memory}, {machine.system}; {machine.date}",
        f"Python {machine.python}, {versions}",
        f"Import: {imports}; aim: at most NumPy's",
    ]
    if machine.wheel is not None:
        lines.append(f"Wheel: {machine.wheel / 1e6:.1f} MB; aim: at most 15 MB")
    return lines


def columns(group: Group, frameworks: Iterable[str]) -> str:
    """The line above a group's rows."""
    titles = "".join(f"{FRAMEWORKS[name].title:>{NUMBER}}" for name in frameworks)
    return f"{group.name:<{NAME}}{titles}{'ratio':>9}   {aim(group)}"


def aim(group: Group) -> str:
    return "no aim" if group.aim is None else f"aim {group.aim:g}"


def line(outcome: Outcome, frameworks: Iterable[str]) -> str:
    """A row's times in microseconds, the best peer's time to minitensor's, and whether that is enough."""
    times = "".join(f"{microseconds(outcome.seconds.get(name)):>{NUMBER}}" for name in frameworks)
    ratio = f"{number(outcome.ratio):>9}"
    if sys.stdout.isatty() and outcome.meets_its_aim is not None:
        ratio = f"\x1b[{32 if outcome.meets_its_aim else 31}m{ratio}\x1b[0m"
    return f"  {outcome.row.name:<{NAME - 2}}{times}{ratio}   {mark(outcome)}".rstrip()


def mark(outcome: Outcome) -> str:
    return {True: "✓", False: "below", None: ""}[outcome.meets_its_aim]


def microseconds(seconds: float | None) -> str:
    """Three digits of it, or a dash."""
    return number(None if seconds is None else seconds * 1e6)


def number(value: float | None) -> str:
    """Three digits of a number, or a dash."""
    if value is None:
        return "–"
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:,.{digits}f}"


def verdict(outcomes: Sequence[Outcome]) -> str:
    """How many rows meet their aim, and the mean of all."""
    met = [outcome.meets_its_aim for outcome in outcomes if outcome.meets_its_aim is not None]
    mean = geometric_mean(outcomes)
    if mean is None:
        return "There is nothing to compare with."
    return (
        f"{sum(met)} of {len(met)} rows with an aim meet it. Geometric mean of all ratios: {number(mean)}; "
        f"aim {MEAN_AIM}."
    )
