"""Where and with what a run was made."""

from __future__ import annotations

import datetime
import os
import platform
from dataclasses import dataclass
from pathlib import Path

from .frameworks import THREADS


@dataclass(frozen=True)
class Machine:
    """What stands above the table."""

    processor: str
    threads: int
    memory: str
    system: str
    python: str
    date: str
    versions: dict[str, str]
    """Of each framework."""
    imports: dict[str, float]
    """The seconds that importing each framework takes."""
    wheel: int | None
    """Its size in bytes."""
    rounds: int

    @classmethod
    def this(cls, versions: dict[str, str], imports: dict[str, float], wheel: Path | None, rounds: int) -> Machine:
        return cls(
            processor(),
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


def processor() -> str:
    """The processor's name, and the widest vectors it has."""
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
