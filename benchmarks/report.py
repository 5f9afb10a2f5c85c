"""Formats the results for a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence

from .frameworks import FRAMEWORKS
from .machine import Machine
from .outcome import Outcome, geometric_mean
from .row import Group
from .rows import MEAN_TARGET

NAME, NUMBER = 45, 10


def heading(machine: Machine) -> list[str]:
    """Returns lines on the machine, the versions, the import times and the size of the wheel."""
    versions = ", ".join(f"{FRAMEWORKS[n].title} {v}" for n, v in machine.versions.items() if n != "inductor")
    imports = ", ".join(f"{FRAMEWORKS[n].title} {s * 1e3:.0f} ms" for n, s in machine.imports.items())
    lines = [
        f"{machine.processor}, {machine.threads} cores, {machine.memory}, {machine.system}; {machine.date}",
        *([f"SIMD flags: {machine.flags}"] if machine.flags else []),
        f"Python {machine.python}, {versions}",
        f"Import: {imports}; target: at most NumPy's",
    ]
    if machine.wheel is not None:
        lines.append(f"Wheel: {machine.wheel / 1e6:.1f} MB; target: at most 15 MB")
    return lines


def columns(group: Group, frameworks: Iterable[str]) -> str:
    """Returns the header line of a group."""
    titles = "".join(f"{FRAMEWORKS[name].title:>{NUMBER}}" for name in frameworks)
    return f"{group.name:<{NAME}}{titles}{'ratio':>9}   {target(group)}"


def target(group: Group) -> str:
    return "no target" if group.target is None else f"target {group.target:g}"


def line(outcome: Outcome, frameworks: Iterable[str]) -> str:
    """Returns a row: the times in microseconds, the ratio, and whether it meets the target."""
    times = "".join(f"{microseconds(outcome.seconds.get(name)):>{NUMBER}}" for name in frameworks)
    ratio = f"{number(outcome.ratio):>9}"
    if sys.stdout.isatty() and outcome.meets_target is not None:
        ratio = f"\x1b[{32 if outcome.meets_target else 31}m{ratio}\x1b[0m"
    return f"  {outcome.row.name:<{NAME - 2}}{times}{ratio}   {mark(outcome)}".rstrip()


def mark(outcome: Outcome) -> str:
    return {True: "✓", False: "below", None: ""}[outcome.meets_target]


def microseconds(seconds: float | None) -> str:
    """Formats a time in microseconds with three digits, or as a dash."""
    return number(None if seconds is None else seconds * 1e6)


def number(value: float | None) -> str:
    """Formats a number with three digits, or as a dash."""
    if value is None:
        return "–"
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:,.{digits}f}"


def verdict(outcomes: Sequence[Outcome]) -> str:
    """Returns the number of rows that meet their target, and the mean of all ratios."""
    met = [outcome.meets_target for outcome in outcomes if outcome.meets_target is not None]
    mean = geometric_mean(outcomes)
    if mean is None:
        return "No peers were measured."
    return (
        f"{sum(met)} of {len(met)} rows with a target meet it. Geometric mean of all ratios: {number(mean)}; "
        f"target {MEAN_TARGET}."
    )
