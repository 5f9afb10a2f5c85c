"""What an op's author runs: `opcheck` and `gradcheck`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ._minitensor import Tensor, _gradcheck, _opcheck, float64

__all__ = ["Finding", "Report", "gradcheck", "opcheck"]


class Finding(NamedTuple):
    """Something that is wrong with an op."""

    check: str
    message: str


def counted(n: int, noun: str) -> str:
    """`1 sample`, `2 samples`."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


class Report(NamedTuple):
    """What `opcheck` found: nothing, one hopes."""

    op: str
    samples: int
    findings: list[Finding]
    #: Where no samples could be made: what the op says to the first arguments that were tried.
    refusal: str | None = None

    def __str__(self) -> str:
        if self.refusal is not None:
            why = "it takes none of the arguments made for it; give some"
            return f"opcheck of '{self.op}': {why}. It says: {self.refusal}"
        samples, findings = counted(self.samples, "sample"), counted(len(self.findings), "finding")
        lines = [f"opcheck of '{self.op}': {samples}, {findings}"]
        return "\n  ".join(lines + [f"{f.check}: {f.message}" for f in self.findings])


def _name(op: Any) -> str:
    """The registered name of `mt.ops.<op>`, or of `mt.ops.<namespace>.<op>`."""
    if isinstance(op, str):
        return op
    module = getattr(op, "__module__", "") or ""
    if not module.startswith("minitensor.ops"):
        raise TypeError(f"opcheck takes an op such as mt.ops.swish, or its name, got {op!r}")
    namespace = module.removeprefix("minitensor.ops").strip(".").replace(".", "::")
    return f"{namespace}::{op.__name__}" if namespace else str(op.__name__)


def opcheck(op: Any, *args: Any, raises: bool = True, **kwargs: Any) -> Report:
    """Puts an op to every check that can be made without knowing what it computes.

    `args` and `kwargs` are those of a call to try; without any, samples are made from the definition. Among the checks:
    inferred against real shapes and dtypes, gradients against finite differences (twice over), one tensor given for two
    inputs, broadcasting, empty, 0-d, strided and overlapping inputs, NaN and infinities, other threads, determinism,
    leaks. With `raises=False` the report is returned whatever was found.

    >>> import minitensor as mt
    >>> mt.testing.opcheck(mt.ops.swish).findings
    []
    """
    name, samples, findings, refusal = _opcheck(_name(op), args, kwargs)
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
    """Compares the gradient of `f(*inputs)` with central differences, its gradient, and so on for as many `orders`.

    The inputs whose gradients are checked are float64; what differs is raised, with the input and element.

    >>> import minitensor as mt
    >>> mt.testing.gradcheck(lambda x: (x * x).sum(), mt.Tensor([1.0, 2.0], dtype="float64"))
    True
    """
    tensors = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if not any(t.dtype == float64 for t in tensors):
        raise ValueError(
            "gradcheck needs a float64 input, as differences of float32 say nothing: use astype('float64')"
        )
    _gradcheck(f, tensors, step, atol, rtol, orders)
    return True
