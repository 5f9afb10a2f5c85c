"""The speed of ops relative to PyTorch, measured and stored in `speed.json`."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from minitensor.__main__ import _processor

import minitensor as mt

FILE = "speed.json"
SHAPE = (512, 512)
#: Seconds for each measurement, and how often it is repeated.
SPAN, REPEATS = 0.05, 7


def peers() -> dict[str, Callable[..., Any]]:
    """The same functions in PyTorch."""
    import torch
    from torch.nn import functional as f

    return {
        "squareplus": lambda x: 0.5 * (x + (x * x + 4).sqrt()),
        "snake": lambda x: x + x.sin().square(),
        "serf": lambda x: x * f.softplus(x).erf(),
        "logish": lambda x: x * x.sigmoid().log1p(),
        "tanhexp": lambda x: x * x.exp().tanh(),
        "growing_cosine": lambda x: x * x.cos(),
        "swiglu": lambda x, y: f.silu(x) * y,
        "soft_shrink": f.softshrink,
        "l2_normalize": lambda x: f.normalize(x, dim=-1),
        "centered_rms_norm": lambda x: f.layer_norm(x, x.shape[-1:]),
        "dynamic_tanh": lambda x, a, w, b: w * (a * x).tanh() + b,
        "log_cosh": lambda x, y: (x - y).cosh().log(),
        "min_max_scale": lambda x: (x - x.amin(-1, True)) / (x.amax(-1, True) - x.amin(-1, True)),
        "pinball_loss": lambda x, y: torch.maximum(0.5 * (y - x), -0.5 * (y - x)),
        "triplet_loss": lambda a, p, n: f.relu((a - p).square().sum(-1) - (a - n).square().sum(-1) + 1),
        "fermi_dirac": lambda e, u, t: ((u - e) / t).sigmoid(),
        "teager_energy": lambda x: x.square() - f.pad(x[..., :-1], (1, 0)) * f.pad(x[..., 1:], (0, 1)),
        "cauchy_log_pdf": lambda x, m, s: torch.distributions.Cauchy(m, s, validate_args=False).log_prob(x),
    }


def measure(folder: Path) -> None:
    """Measures all ops with a peer, and their gradients, on one thread, and stores the ratios."""
    import torch

    torch.set_num_threads(1)
    mt.set_num_threads(1)
    ops = {}
    for name, peer in peers().items():
        count = len(mt.ops.describe(name)["inputs"])
        required = sum(not i["optional"] for i in mt.ops.describe(name)["inputs"])
        ours = [mt.rand(*SHAPE) + 0.5 for _ in range(min(count, required))]
        theirs = [torch.rand(SHAPE) + 0.5 for _ in ours]
        op = getattr(mt.ops, name)
        forward = _seconds(lambda: peer(*theirs)) / _seconds(lambda: op(*ours))
        for tensor in (*ours, *theirs):
            tensor.requires_grad_()
        both = _seconds(lambda: peer(*theirs).sum().backward()) / _seconds(lambda: op(*ours).sum().backward())
        ops[name] = {"forward": round(forward, 2), "with_gradient": round(both, 2)}
    stored = {
        "processor": _processor(),
        "date": datetime.date.today().isoformat(),
        "torch": torch.__version__,
        "shape": list(SHAPE),
        "ops": ops,
    }
    (folder / FILE).write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")


def _seconds(call: Callable[[], Any]) -> float:
    """The least time of a call over the repetitions."""
    call()
    start = time.perf_counter()
    call()
    loops = max(1, int(SPAN / (time.perf_counter() - start)))
    spans = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(loops):
            call()
        spans.append((time.perf_counter() - start) / loops)
    return min(spans)


def read(folder: Path) -> dict[str, Any]:
    """The stored measurements, empty if there are none."""
    path = folder / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def summary(times: Mapping[str, Any]) -> str:
    """A sentence about the measurements."""
    if not times:
        return ""
    rows, columns = times["shape"]
    return (
        f"Speeds are relative to PyTorch {times['torch']} without compilation, for {rows} × {columns} float32 numbers on one "
        f"thread of {times['processor']}, measured on {times['date']}."
    )


def sentence(ratios: Mapping[str, float]) -> str:
    """The ratios of an op."""
    return f"{ratios['forward']:.1f} × the speed of PyTorch, {ratios['with_gradient']:.1f} × with the gradient"
