"""Measures the peak memory of a training step: `cargo xtask bench --memory`, on Linux.

Each framework runs in its own process: `python -m benchmarks.memory FRAMEWORK [jitted]`. Figures are peaks of the
resident memory above the memory that is resident before the first step, which includes the inputs and parameters.
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from .crew import ENVIRONMENT, ROOT
from .frameworks import FRAMEWORKS, Loop
from .row import Row, index, normal
from .rows import LAYERS, MLP, TRAINING

BATCH = 4096
ROW = Row(TRAINING, MLP, {"x": normal(BATCH, 784), "t": index(BATCH, below=10)} | LAYERS)


def report(frameworks: Iterable[str]) -> Iterator[str]:
    """Yields a line for each framework. minitensor runs with and without `mt.jit`."""
    yield f"Peak memory of a training step in MB, MLP 784-256-256-10, batch {BATCH}"
    yield f"  {'':<20}{'first steps':>14}{'later steps':>14}"
    for name in frameworks:
        kind = FRAMEWORKS[name]
        if kind.takes(ROW):
            for jitted in (False, True) if name == "minitensor" else (False,):
                title = f"{kind.title}, mt.jit" if jitted else kind.title
                first, later = in_process(name, jitted)
                yield f"  {title:<20}{first / 1e6:>14.1f}{later / 1e6:>14.1f}"


def in_process(framework: str, jitted: bool) -> list[int]:
    """Measures a framework in a new process."""
    command = [sys.executable, "-m", "benchmarks.memory", framework, *["jitted"] * jitted]
    environment = os.environ | ENVIRONMENT
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return [int(word) for word in done.stdout.split()]


def measure(framework: str, jitted: bool) -> tuple[int, int]:
    """Returns the peaks of the first steps, in which compilers run, and of later steps, in bytes."""
    worker, row = FRAMEWORKS[framework](), replace(ROW, jitted=jitted)
    # Libraries allocate memory of their own in their first calls.
    worker.loop(row, 16)(3)
    loop = worker.loop(row)
    trim()
    before = status("VmRSS")
    return peak(loop) - before, peak(loop) - before


def peak(loop: Loop) -> int:
    """Returns the peak of the resident memory in some steps."""
    trim()
    # This value resets the peak.
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    loop(3)
    return status("VmHWM")


def trim() -> None:
    """Returns unused memory to the system."""
    gc.collect()
    if minitensor := sys.modules.get("minitensor"):
        minitensor.empty_cache()
    ctypes.CDLL(None).malloc_trim(0)


def status(field: str) -> int:
    """Returns a field of `/proc/self/status` in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


if __name__ == "__main__":
    print(*measure(sys.argv[1], "jitted" in sys.argv))
