"""The main program: `python -m benchmarks.bench [--quick] [--save] [--memory] [NAME …]`.

Each installed framework runs in its own process. The processes take turns in rounds. All processes except the active
one are stopped, because thread pools disturb each other even across processes.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from . import memory, page, report
from .crew import ROOT, Crew, Failure, Member
from .frameworks import FRAMEWORKS
from .machine import Machine
from .outcome import Outcome
from .row import Row
from .rows import ROWS

DOCS = ROOT / "docs"


@dataclass(frozen=True)
class Plan:
    """The duration of the measurement of a row."""

    rounds: int
    seconds: float
    """The duration of a turn of one framework."""


FULL, QUICK = Plan(21, 0.02), Plan(5, 0.01)

BUSY = 0.7
"""The load average above which the machine is considered busy."""

DROP_FACTOR = 3
"""After this many rounds, a peer that is slower than the best peer by this factor is no longer timed."""


def measure(row: Row, crew: list[Member], plan: Plan) -> Outcome:
    """Measures the median time of each framework. A framework that fails or returns other values has none."""
    counts: dict[str, int] = {}
    reference = None
    takers = [member for member in crew if FRAMEWORKS[member.framework].takes(row)]
    for member in takers:
        try:
            prepared = member.ask("prepare", row.name)
            if member.framework == "minitensor":
                reference = prepared
            elif reference and (difference := reference.difference(prepared, row.dtype)):
                raise Failure(difference)
            counts[member.framework] = max(1, round(plan.seconds / prepared.seconds))
        except Failure as failure:
            complain(row, member, failure)
    times: dict[str, list[float]] = {name: [] for name in counts}
    for number in range(plan.rounds):
        for member in (m for m in takers if m.framework in counts):
            try:
                times[member.framework].append(member.ask("time", counts[member.framework]))
            except Failure as failure:
                complain(row, member, failure)
                del counts[member.framework], times[member.framework]
        if number + 1 == DROP_FACTOR:
            best = min((statistics.median(t) for name, t in times.items() if name != "minitensor"), default=0)
            for name in list(counts):
                if name != "minitensor" and statistics.median(times[name]) > DROP_FACTOR * best:
                    del counts[name]
    for member in takers:
        try:
            member.ask("drop")
        except Failure as failure:
            complain(row, member, failure)
    return Outcome(row, {name: statistics.median(t) for name, t in times.items() if t})


def complain(row: Row, member: Member, failure: Failure) -> None:
    print(f"{row.name}, {member.title}: {failure}", file=sys.stderr, flush=True)


def import_seconds(frameworks: list[str], rounds: int) -> dict[str, float]:
    """Measures the median time of `import` in a new interpreter."""
    code = "from time import perf_counter as t; start = t(); import {}; print(t() - start)"
    modules = {name: FRAMEWORKS[name].module for name in frameworks if name != "inductor"}
    times: dict[str, list[float]] = {name: [] for name in modules}
    for _ in range(rounds):
        for name, module in modules.items():
            command = [sys.executable, "-c", code.format(module)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
            times[name].append(float(done.stdout))
    return {name: statistics.median(t) for name, t in times.items()}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cargo xtask bench", description="Compare minitensor's speed with its peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only rows whose name contains one of these")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--save", action="store_true", help="write docs/benchmarks.md and docs/benchmarks.svg")
    parser.add_argument("--memory", action="store_true", help="measure the memory of a training step instead")
    parser.add_argument("--wheel", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.save and chosen.names:
        parser.error("--save requires a complete run; remove the names")
    return chosen


def main() -> int:
    chosen = arguments()
    if not hasattr(signal, "SIGSTOP"):
        print("benchmarks need SIGSTOP to stop processes; run them on Linux or macOS", file=sys.stderr)
        return 1
    rows = [row for row in ROWS if not chosen.names or any(name.lower() in row.name.lower() for name in chosen.names)]
    if not rows:
        print(f"no row has a name that contains {' or '.join(chosen.names)}; the rows are:", file=sys.stderr)
        print("\n".join(f"  {row.name}" for row in ROWS), file=sys.stderr)
        return 1
    versions = {name: version for name, kind in FRAMEWORKS.items() if (version := kind.version())}
    if "minitensor" not in versions:
        print(f"minitensor is not installed in {sys.prefix}; run `cargo xtask bench`", file=sys.stderr)
        return 1
    if missing := ", ".join(sorted({kind.module for name, kind in FRAMEWORKS.items() if name not in versions})):
        install = f"{sys.executable} -m pip install -r requirements/bench.txt"
        print(f"not installed and therefore skipped: {missing}\nto install all: {install}\n", file=sys.stderr)
    if chosen.memory:
        for line in memory.report(versions):
            print(line, flush=True)
        return 0
    if (load := os.getloadavg()[0]) > BUSY:
        print(f"the machine is busy (load {load:.1f}), so the ratios are unreliable\n", file=sys.stderr)
    # A signal that ends this process must also end the workers.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    plan = QUICK if chosen.quick else FULL
    machine = Machine.this(
        versions, import_seconds(list(versions), 3 if chosen.quick else 7), chosen.wheel, plan.rounds
    )
    print("\n".join(report.heading(machine)))
    outcomes: list[Outcome] = []
    try:
        with Crew(versions) as crew:
            for row in rows:
                if not outcomes or outcomes[-1].row.group != row.group:
                    print(f"\n{report.columns(row.group, versions)}")
                outcomes.append(measure(row, crew, plan))
                print(report.line(outcomes[-1], versions), flush=True)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    print(f"\n{report.verdict(outcomes)}")
    if chosen.save:
        page.save(DOCS, machine, outcomes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
