"""The checks of an op in PyTorch, for `mt.testing.opcheck(op, backends=("torch",))`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from .._minitensor import DType, Tensor, _array_function
from .definition import DTYPES
from .op import Op
from .registration import find

#: The inputs and attributes of a call in minitensor.
Sample = tuple[list[Any], dict[str, Any]]
Finding = tuple[str, str]


class Case(NamedTuple):
    """A call, and its results in minitensor."""

    op: Op
    args: tuple[Any, ...]
    expected: list[Tensor]
    #: Whether two calls differ.
    is_random: bool

    def fresh(self) -> tuple[Any, ...]:
        """The arguments with copies of the tensors."""
        count = len(self.op.definition.inputs)
        return (*copied(list(self.args[:count]), lambda t: t.detach().clone()), *self.args[count:])

    def compare(self, results: Any) -> None:
        """Raises an error if results differ."""
        results = flat(results)
        if self.op.definition.mutated is not None or self.is_random:
            return
        if len(results) != len(self.expected):
            raise AssertionError(f"expected {len(self.expected)} results, got {len(results)}")
        for ours, theirs in zip(self.expected, results, strict=True):
            torch.testing.assert_close(theirs.detach(), to_torch(ours), equal_nan=True)


def check(name: str, samples: list[Sample]) -> Iterator[Finding]:
    """Yields the faults of an op: pairs of check and message.

    The results are those of minitensor, in eager and compiled code, with static and dynamic shapes. PyTorch's opcheck
    passes, and so does gradcheck for inputs of float64.
    """
    op = find(name)
    for inputs, attrs in samples:
        try:
            expected, again = (
                flat(_array_function(name)(*copied(inputs, lambda t: t.detach().clone()), **attrs)) for _ in range(2)
            )
        except Exception:
            # minitensor rejects these arguments.
            continue
        is_random = any(
            not torch.equal(to_torch(a).nan_to_num(), to_torch(b).nan_to_num())
            for a, b in zip(expected, again, strict=True)
        )
        case = Case(op, arguments(op, inputs, attrs), expected, is_random)
        for title, run in CHECKS.items():
            try:
                run(case)
            except Exception as error:
                yield f"torch: {title}", str(error)


def results(case: Case) -> None:
    """The direct call and the dispatcher compute what minitensor computes."""
    for call in (case.op.function, case.op.op):
        case.compare(call(*case.fresh()))


def opcheck(case: Case) -> None:
    """PyTorch's own checks pass. They take NaN and random numbers for differences."""
    names = ["test_schema", "test_autograd_registration", "test_faketensor"]
    if not case.is_random and not any(to_torch(t).isnan().any() for t in case.expected):
        names.append("test_aot_dispatch_dynamic")
    torch.library.opcheck(case.op.op, case.fresh(), test_utils=names)


def compilation(case: Case) -> None:
    """`torch.compile` needs no graph break, with static and with dynamic shapes."""
    for dynamic in (False, True):
        torch._dynamo.reset()
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            run = torch.compile(case.op.function, fullgraph=True, dynamic=dynamic, backend="aot_eager")
            case.compare(run(*case.fresh()))


def gradcheck(case: Case) -> None:
    """The gradients are those of finite differences."""
    op, args = case.op, case.fresh()
    count = len(op.definition.inputs)
    doubles = [t for t in op.definition.flat(args) if t is not None and t.dtype == torch.float64 and t.numel() < 64]
    is_finite = all(bool(to_torch(t).isfinite().all()) for t in case.expected)
    if not op.definition.is_differentiable or case.is_random or not doubles or not is_finite:
        return
    for t in doubles:
        t.requires_grad_()
    torch.autograd.gradcheck(
        lambda *_: [t for t in flat(op.op(*args[:count], *args[count:])) if t.is_floating_point()], doubles
    )


CHECKS: dict[str, Callable[[Case], None]] = {
    "results": results,
    "opcheck": opcheck,
    "compilation": compilation,
    "gradcheck": gradcheck,
}


def arguments(op: Op, inputs: list[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments of a call in PyTorch, by position."""
    values = {k: DTYPES[str(v)] if isinstance(v, DType) else v for k, v in attrs.items()}
    return (*copied(inputs, to_torch), *[values[a.name] for a in op.definition.attrs])


def to_torch(tensor: Tensor) -> torch.Tensor:
    """A tensor of minitensor as a contiguous tensor of PyTorch with memory of its own."""
    return torch.from_dlpack(tensor.detach().contiguous()).clone()


def copied(inputs: list[Any], change: Callable[[Any], Any]) -> list[Any]:
    """The inputs of a call, with each tensor changed."""
    return [copied(i, change) if isinstance(i, list) else None if i is None else change(i) for i in inputs]


def flat(results: Any) -> list[Any]:
    """The results of a call as a list."""
    if isinstance(results, list | tuple):
        return [t for result in results for t in flat(result)]
    return [] if results is None else [results]
