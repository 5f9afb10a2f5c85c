"""Writes the table of docs/torch-ir.md: which part of real architectures minitensor computes, and how fast.

    python benchmarks/torch_ir.py

It needs PyTorch, torchvision and transformers. Weights are random and sizes small. A time is the least of several
runs, with one thread.
"""

from __future__ import annotations

import copy
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "bridges"))

import torch
from minitensor.torch_ir import extract_ir
from torch.utils import _pytree as pytree
from torch_ir_models import MODELS, build

import minitensor as mt

#: The least seconds of measurement.
LEAST = 0.5


def seconds(function: Callable[[], Any]) -> float:
    """The least time of a call."""
    function()
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < LEAST:
        before = time.perf_counter()
        function()
        times.append(time.perf_counter() - before)
    return min(times)


def row(name: str) -> str:
    """The row of an architecture."""
    model, inputs = build(MODELS[name])
    ir = extract_ir(model, inputs)
    tensors = [t for t in pytree.tree_leaves(inputs) if isinstance(t, torch.Tensor)]
    program = ir.compile(model)
    args, named = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
    with torch.no_grad():
        theirs, ours = seconds(lambda: model(*args, **named)), seconds(lambda: program(tensors))
        results = pytree.tree_leaves(model(*args, **named))
        exact = doubled(model, args, named)
    return (
        f"| {name} | {len(ir.nodes)} | {ir.coverage().share:.0%} | {error(program(tensors), exact):.1e} "
        f"| {error(results, exact):.1e} | {ours / theirs:.2f} |"
    )


def doubled(model: torch.nn.Module, args: Any, named: Any) -> list[torch.Tensor]:
    """The results in float64."""
    args, named = pytree.tree_map_only(
        torch.Tensor, lambda t: t.double() if t.is_floating_point() else t, (args, named)
    )
    return pytree.tree_leaves(copy.deepcopy(model).double()(*args, **named))


def error(results: list[torch.Tensor], exact: list[torch.Tensor]) -> float:
    """The largest error, relative to the largest element."""
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(results, exact, strict=True))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    mt.set_num_threads(1)
    print("| model | calls | by minitensor | error | error of PyTorch | time relative to PyTorch |")
    print("|---|---|---|---|---|---|")
    for name in sys.argv[1:] or MODELS:
        print(row(name), flush=True)
