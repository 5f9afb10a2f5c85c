"""Checks for authors of ops: `opcheck` and `gradcheck`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ._minitensor import Tensor, _gradcheck, _opcheck, _samples, complex128, float64
from .arrays.names import op_name

__all__ = ["Finding", "Report", "gradcheck", "opcheck"]


class Finding(NamedTuple):
    """A fault of an op."""

    check: str
    message: str


def counted(n: int, noun: str) -> str:
    """Returns a number with its noun, such as `1 sample` or `2 samples`."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


class Report(NamedTuple):
    """The result of `opcheck`."""

    op: str
    samples: int
    findings: list[Finding]
    #: The error that the op raised for the first generated arguments, if it rejected all of them.
    refusal: str | None = None

    def __str__(self) -> str:
        if self.refusal is not None:
            why = "the op rejects all generated arguments; pass arguments that it accepts"
            return f"opcheck of '{self.op}': {why}. Its error: {self.refusal}"
        samples, findings = counted(self.samples, "sample"), counted(len(self.findings), "finding")
        lines = [f"opcheck of '{self.op}': {samples}, {findings}"]
        return "\n  ".join(lines + [f"{f.check}: {f.message}" for f in self.findings])


#: The modules that check an op in other frameworks. Each has `check(name, samples)`, which yields findings.
_BACKENDS = {
    "jax": "minitensor.jax.check",
    "numpy": "minitensor.arrays.check",
    "torch": "minitensor.torch.check",
}


def _in_frameworks(name: str, backends: Sequence[str], args: Any, kwargs: Any) -> list[tuple[str, str]]:
    """Returns the findings of the backends other than minitensor."""
    findings: list[tuple[str, str]] = []
    for backend in backends:
        if backend == "minitensor":
            continue
        if backend not in _BACKENDS:
            known = ", ".join(f"'{known}'" for known in ["minitensor", *_BACKENDS])
            raise ValueError(f"opcheck: unknown backend '{backend}'; the backends are {known}")
        findings += importlib.import_module(_BACKENDS[backend]).check(name, _samples(name, args, kwargs))
    return findings


def opcheck(
    op: Any, *args: Any, raises: bool = True, backends: str | Sequence[str] = ("minitensor",), **kwargs: Any
) -> Report:
    """Runs all checks on an op that do not depend on what it computes.

    `args` and `kwargs` are the arguments of one call. Without them, the arguments are generated from the definition.
    The checks cover shape and dtype inference, gradients of several orders against finite differences, one tensor
    passed for two inputs, broadcasting, empty, 0-d, strided and overlapping inputs, NaN and infinities, threads,
    determinism and memory leaks.

    `backends` selects where the op is checked. In `"torch"`, the checks are equal results, PyTorch's opcheck and
    gradcheck, compilation with static and dynamic shapes, and equal results and gradients of parts, as they are
    computed on several machines. In `"jax"`, they are equal results, also under `jit` and `vmap`, gradients, and, if
    there are several devices, sharded arrays. In `"numpy"`, they are equal results, dtypes and shapes on arrays.

    Raises RuntimeError if there are findings, and ValueError if the op rejects all generated arguments. With
    `raises=False`, returns the report in these cases too.

    >>> import minitensor as mt
    >>> mt.testing.opcheck(mt.ops.swish).findings
    []
    """
    name, samples = op_name(op, "opcheck"), 1
    backends = [backends] if isinstance(backends, str) else backends
    findings: list[tuple[str, str]] = []
    refusal: str | None = None
    if "minitensor" in backends:
        name, samples, findings, refusal = _opcheck(name, args, kwargs)
    findings += _in_frameworks(name, backends, args, kwargs)
    report = Report(name, samples, [Finding(*f) for f in findings], refusal)
    if raises and not samples:
        raise ValueError(str(report))
    if raises and findings:
        raise RuntimeError(str(report))
    return report


def gradcheck(
    f: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    *,
    step: float = 1e-5,
    atol: float = 1e-6,
    rtol: float = 1e-4,
    orders: int = 2,
) -> bool:
    """Compares the derivatives of `f(*inputs)`, up to the order `orders`, with central differences.

    Only the gradients of float64 and complex128 inputs are checked. Raises an error that names the input and the
    element if a derivative differs.

    >>> import minitensor as mt
    >>> mt.testing.gradcheck(lambda x: (x * x).sum(), mt.Tensor([1.0, 2.0], dtype="float64"))
    True
    """
    tensors = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if not any(t.dtype in (float64, complex128) for t in tensors):
        raise ValueError(
            "gradcheck needs a float64 or complex128 input, because finite differences of float32 are "
            "too inexact; use astype('float64')"
        )
    _gradcheck(f, tensors, step, atol, rtol, orders)
    return True
