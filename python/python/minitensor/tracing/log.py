"""Prints the graphs that are recorded."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

from .._minitensor import Graph


def recorded(function: Callable[..., Any], graph: Graph) -> None:
    """Prints a new graph if the environment variable `MINITENSOR_LOG` is `graph`."""
    names = os.environ.get("MINITENSOR_LOG", "")
    if unknown := set(names.split(",")) - {"", "graph"}:
        warnings.warn(
            f"the environment variable MINITENSOR_LOG is {names!r}, but there is no log of "
            f"{', '.join(sorted(unknown))}; it may be 'graph'",
            RuntimeWarning,
            stacklevel=4,
        )
    if "graph" not in names.split(","):
        return
    stages = list(graph.stages)
    if graph.gradient is not None:
        stages.append(("gradient", graph.gradient))
    name = getattr(function, "__qualname__", repr(function))
    print(*(f"# mt.jit {name}: {stage}\n{text}" for stage, text in stages), sep="\n", file=sys.stderr)
