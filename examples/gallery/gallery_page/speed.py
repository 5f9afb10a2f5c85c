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
#: Seconds for each measurement, and how often both sides are measured, in turn.
SPAN, REPEATS = 0.03, 15


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
    ops = {name: _ratios(name, peer) for name, peer in peers().items()}
    stored = {
        "processor": _processor(),
        "date": datetime.date.today().isoformat(),
        "torch": torch.__version__,
        "shape": list(SHAPE),
        "ops": ops,
    }
    (folder / FILE).write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")


def _ratios(name: str, peer: Callable[..., Any]) -> dict[str, float]:
    """Returns the time of PyTorch over ours, for the op and for the op with its gradient."""
    import torch

    op = getattr(mt.ops, name)
    inputs = [i for i in mt.ops.describe(name)["inputs"] if not i["optional"]]
    ours, theirs = ([rand(*SHAPE) + 0.5 for _ in inputs] for rand in (mt.rand, torch.rand))
    forward = _ratio(lambda: peer(*theirs), lambda: op(*ours))
    for tensor in (*ours, *theirs):
        tensor.requires_grad_()
    both = _ratio(lambda: peer(*theirs).sum().backward(), lambda: op(*ours).sum().backward())
    return {"forward": round(forward, 1), "with_gradient": round(both, 1)}


def _ratio(theirs: Callable[[], Any], ours: Callable[[], Any]) -> float:
    """Returns the least time of a call over that of another, measured in turn, because the machine may be shared."""
    least = [_seconds(theirs), _seconds(ours)]
    for _ in range(REPEATS):
        least = [min(least[0], _seconds(theirs)), min(least[1], _seconds(ours))]
    return least[0] / least[1]


def _seconds(call: Callable[[], Any]) -> float:
    """Returns the mean time of the calls within a span."""
    loops, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < SPAN:
        call()
        loops += 1
    return spent / loops


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
        f"Speeds are relative to PyTorch {times['torch']} without compilation, for {rows} × {columns} float32 numbers\n"
        f"on one thread of {times['processor']}, measured on {times['date']}."
    )


def sentence(ratios: Mapping[str, float]) -> str:
    """The ratios of an op."""
    return f"{ratios['forward']:.1f} × the speed of PyTorch, {ratios['with_gradient']:.1f} × with the gradient"
