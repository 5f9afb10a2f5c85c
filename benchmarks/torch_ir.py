"""Writes the table of docs/torch-ir.md: which part of real architectures minitensor computes, and how fast.

    python benchmarks/torch_ir.py

It needs PyTorch, torchvision and transformers. Weights are random and sizes small. A time is the least of several runs.
"""

from __future__ import annotations

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

#: The least seconds of measurement.
LEAST = 1.0


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
        wanted = [t for t in pytree.tree_leaves(model(*args, **named)) if isinstance(t, torch.Tensor)]
    pairs = zip(program(tensors), wanted, strict=True)
    difference = max(((a - b).abs().max() / b.abs().max()).item() for a, b in pairs)
    return (
        f"| {name} | {len(ir.nodes)} | {ir.coverage().share:.0%} | {difference:.1e} | {theirs * 1e3:.1f} ms "
        f"| {ours * 1e3:.1f} ms | {ours / theirs:.2f} |"
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print("| model | calls | by minitensor | difference | PyTorch | minitensor | relative time |")
    print("|---|---|---|---|---|---|---|")
    for name in sys.argv[1:] or MODELS:
        print(row(name), flush=True)
