"""Compares ops on a GPU with PyTorch: `python benchmarks/cuda.py`, with the wheel and PyTorch installed.

Prints a table in Markdown. A time is the median of several runs of many calls, which alternate between the libraries.
It includes the call from Python. A ratio above 1 means that minitensor is faster.
"""

import statistics
import time
from datetime import date

import torch
import torch.nn.functional as F

import minitensor as mt

RUNS = 7


def timed(f, synchronize):
    """Returns the time of a call in µs."""
    f()
    synchronize()
    start = time.perf_counter()
    f()
    synchronize()
    calls = max(10, min(500, int(0.02 / (time.perf_counter() - start))))
    start = time.perf_counter()
    for _ in range(calls):
        f()
    synchronize()
    return (time.perf_counter() - start) / calls * 1e6


def with_backward(f, *leaves):
    """Returns a function that computes `f` and its gradients."""

    def run():
        for leaf in leaves:
            leaf.grad = None
        f(*leaves).sum().backward()

    return run


def chain(x, exp, tanh):
    y = x * 2 + 1
    y = tanh(y) * x - 0.5
    y = exp(-y * y) + x
    return y * y / (x * x + 1)


def rows(x, t, w, u):
    """Yields names, and functions of minitensor and of PyTorch, for a matrix and a vector as tensors of both."""
    size = (t.shape[-1],)
    yield "x + x", lambda: x + x, lambda: t + t
    yield "swish", lambda: mt.ops.swish(x), lambda: F.silu(t)
    yield "gelu", lambda: mt.ops.gelu(x), lambda: F.gelu(t)
    yield "x + row", lambda: x + w, lambda: t + u
    yield "x + x.T", lambda: x + x.T, lambda: t + t.T
    yield "softmax", lambda: mt.ops.softmax(x), lambda: torch.softmax(t, -1)
    yield "softmax(axis=0)", lambda: mt.ops.softmax(x, axis=0), lambda: torch.softmax(t, 0)
    yield "layer_norm", lambda: mt.ops.layer_norm(x, w, w), lambda: F.layer_norm(t, size, u, u)
    yield "logsumexp", lambda: mt.ops.logsumexp(x, axis=-1), lambda: torch.logsumexp(t, -1)
    yield "sum()", lambda: x.sum(), lambda: t.sum()
    yield "sum(axis=0)", lambda: x.sum(axis=0), lambda: t.sum(0)
    yield "sum(axis=1)", lambda: x.sum(axis=1), lambda: t.sum(1)
    yield "x @ x", lambda: x @ x, lambda: t @ t
    jitted = mt.jit(lambda x: chain(x, mt.ops.exp, mt.ops.tanh))
    compiled = torch.compile(lambda t: chain(t, torch.exp, torch.tanh))
    yield "chain of 12 ops, mt.jit and torch.compile", lambda: jitted(x), lambda: compiled(t)
    a, b = x.detach().requires_grad_(), t.detach().requires_grad_()
    v, s = w.detach().requires_grad_(), u.detach().requires_grad_()
    yield "swish with gradient", with_backward(mt.ops.swish, a), with_backward(F.silu, b)
    yield "softmax with gradient", with_backward(mt.ops.softmax, a), with_backward(lambda b: torch.softmax(b, -1), b)
    yield (
        "layer_norm with gradient",
        with_backward(lambda a, v: mt.ops.layer_norm(a, v, v), a, v),
        with_backward(lambda b, s: F.layer_norm(b, size, s, s), b, s),
    )


def main():
    print(f"{mt.cuda.get_device_name()}, PyTorch {torch.__version__}, {date.today()}; times in µs\n")
    print("| op | size | dtype | minitensor | PyTorch | ratio |\n|---|---|---|---|---|---|")
    ratios = []
    for n, dtype in [(8, "float32"), (1024, "float32"), (4096, "float32"), (4096, "bfloat16")]:
        t = torch.randn(n, n, device="cuda", dtype=getattr(torch, dtype))
        u = torch.randn(n, device="cuda", dtype=getattr(torch, dtype))
        for name, ours, theirs in rows(mt.from_dlpack(t), t, mt.from_dlpack(u), u):
            try:
                times = [(timed(ours, mt.cuda.synchronize), timed(theirs, torch.cuda.synchronize)) for _ in range(RUNS)]
            except Exception as error:  # noqa: BLE001
                print(f"| {name} | {n}² | {dtype} | {type(error).__name__}: {str(error)[:200]} | | |")
                continue
            a, b = (statistics.median(column) for column in zip(*times[1:], strict=True))
            ratios.append(b / a)
            print(f"| {name} | {n}² | {dtype} | {a:.1f} | {b:.1f} | {b / a:.2f} |", flush=True)
    print(f"\nGeometric mean of {len(ratios)} ratios: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
