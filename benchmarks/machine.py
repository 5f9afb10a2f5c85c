"""The machine and the versions of a run."""

from __future__ import annotations

import datetime
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from .frameworks import THREADS


@dataclass(frozen=True)
class Machine:
    """The properties shown above the table."""

    processor: str
    flags: str
    threads: int
    memory: str
    system: str
    python: str
    date: str
    versions: dict[str, str]
    """Of each framework."""
    imports: dict[str, float]
    """The import time of each framework in seconds."""
    wheel: int | None
    """The size of the wheel in bytes."""
    rounds: int

    @classmethod
    def this(cls, versions: dict[str, str], imports: dict[str, float], wheel: Path | None, rounds: int) -> Machine:
        return cls(
            processor(),
            flags(),
            THREADS,
            memory(),
            f"{platform.system()} {platform.machine()}",
            platform.python_version(),
            datetime.date.today().isoformat(),
            versions,
            imports,
            wheel.stat().st_size if wheel else None,
            rounds,
        )


#: Instruction sets that decide which loops are possible, as `/proc/cpuinfo` names them.
FLAGS = re.compile(r"avx2|fma|f16c|avx_vnni|avx512\w*|amx_\w+|asimd\w*|sve\w*|bf16|i8mm")


def flags() -> str:
    """Returns the SIMD flags of the CPU."""
    line = next((line for line in read("/proc/cpuinfo").splitlines() if re.match(r"(flags|Features)\s*:", line)), "")
    return " ".join(sorted(flag for flag in line.split() if FLAGS.fullmatch(flag)))


def processor() -> str:
    """Returns the name of the CPU and its widest SIMD instruction set."""
    info = read("/proc/cpuinfo")
    fields = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
    fields = {name.strip(): value.strip() for name, value in fields.items()}
    flags = fields.get("flags", "").split()
    simd = next((name for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if flag in flags), "")
    name = fields.get("model name") or platform.processor() or platform.machine()
    return f"{name}, {simd}" if simd else name


def memory() -> str:
    names = os.sysconf_names
    if "SC_PHYS_PAGES" not in names:
        return ""
    return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"


def read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
