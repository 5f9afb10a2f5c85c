"""What came of it, as a page: `docs/benchmarks.md`, and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from .frameworks import FRAMEWORKS
from .machine import Machine
from .outcome import Outcome
from .picture import picture
from .report import aim, heading, mark, microseconds, number, verdict

GPU = """## GPU

Nothing has been measured yet.
"""


def save(folder: Path, machine: Machine, outcomes: Sequence[Outcome]) -> None:
    """Writes the page and its picture. What the page says of GPUs stays."""
    page = folder / "benchmarks.md"
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    gpu = before[before.index("## GPU") :] if "## GPU" in before else GPU
    page.write_text(markdown(machine, outcomes) + "\n" + gpu, encoding="utf-8")
    (folder / "benchmarks.svg").write_text(picture(outcomes), encoding="utf-8")


def markdown(machine: Machine, outcomes: Sequence[Outcome]) -> str:
    """The page but for its part on GPUs."""
    text = PAGE.format(
        verdict=verdict(outcomes),
        machine="\n".join(f"- {line}" for line in heading(machine)),
        rounds=machine.rounds,
    )
    names = list(machine.versions)
    for group, members in groupby(outcomes, key=lambda outcome: outcome.row.group):
        text += f"\n### {group.name}: {aim(group)}\n\n"
        text += f"| | {' | '.join(FRAMEWORKS[name].title for name in names)} | ratio | |\n"
        text += f"|---|{'--:|' * (len(names) + 1)}---|\n"
        for outcome in members:
            times = " | ".join(microseconds(outcome.seconds.get(name)) for name in names)
            text += f"| {outcome.row.name} | {times} | {number(outcome.ratio)} | {mark(outcome)} |\n"
    return text


PAGE = """# Benchmarks

Written by `cargo xtask bench --save`. How it is measured is in [performance.md](performance.md).

{verdict}

![The ratio of the best peer's time to minitensor's, for each row](benchmarks.svg)

## CPU

{machine}

Times are in microseconds, the medians of {rounds} rounds; `f32` where a row doesn't say otherwise. *compiled* is
PyTorch with `torch.compile`. The ratio is the best peer's time to minitensor's: above 1, minitensor is faster. A dash
stands where a framework hasn't the work, or failed at it.
"""
