"""The checks of an op in PyTorch, for `mt.testing.opcheck(op, backends=("torch",))`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from .._minitensor import DType, Tensor, _array_function
from .definition import DTYPES
from .op import Op
from .registration import find
from .sharding import batch_places

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
    passes, and so does gradcheck for inputs of float64. Parts of a batch have the results and gradients of the whole.
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


def sharding(case: Case) -> None:
    """Parts of each independent dimension have the results and gradients of the whole, as the sharding rule states."""
    op, args = case.op, case.fresh()
    definition = op.definition
    if case.is_random or definition.mutated is not None or definition.gives_list:
        return
    tensors, attributes = definition.flat(args), args[len(definition.inputs) :]
    cotangents = [to_torch(t) for t in case.expected]
    whole = differentiated(op, tensors, attributes, cotangents)
    shapes = [None if t is None else tuple(t.shape) for t in tensors]
    for of_results, of_inputs in batch_places(op, shapes, definition.attributes(args)):
        sizes = [
            t.shape[place] for t, place in zip(tensors, of_inputs, strict=True) if t is not None and place is not None
        ]
        half = max(sizes, default=0) // 2
        if half == 0:
            continue
        parts = []
        for start, end in ((0, half), (half, None)):
            some = [part(t, place, start, end) for t, place in zip(tensors, of_inputs, strict=True)]
            of_some = [part(t, place, start, end) for t, place in zip(cotangents, of_results, strict=True)]
            parts.append(differentiated(op, some, attributes, of_some))
        # What lacks the dimension is a sum over the parts.
        for place, all_of_it, *both in zip([*of_results, *of_inputs], whole, *parts, strict=True):
            if all_of_it is not None:
                joined = sum(both) if place is None else torch.cat(both, place)
                torch.testing.assert_close(joined, all_of_it, equal_nan=True)


def part(t: torch.Tensor | None, place: int | None, start: int, end: int | None) -> torch.Tensor | None:
    """A part of a tensor along a dimension; the whole if it lacks the dimension."""
    return t if t is None or place is None else t.movedim(place, 0)[start:end].movedim(0, place)


def differentiated(
    op: Op, tensors: list[Any], attributes: tuple[Any, ...], cotangents: list[Any]
) -> list[torch.Tensor | None]:
    """The results of a call, then the gradients of its inputs of float64; None for other inputs."""
    tensors = [None if t is None else t.detach().clone() for t in tensors]
    wanted = [t for t in tensors if t is not None and t.dtype == torch.float64 and op.definition.is_differentiable]
    for t in wanted:
        t.requires_grad_()
    results = flat(op.op(*op.definition.nested(tensors), *attributes))
    recorded = [(t, d.to(t.dtype)) for t, d in zip(results, cotangents, strict=True) if t.requires_grad]
    if recorded:
        torch.autograd.backward([t for t, _ in recorded], [d for _, d in recorded])
    return [t.detach() for t in results] + [None if t is None else t.grad for t in tensors]


CHECKS: dict[str, Callable[[Case], None]] = {
    "results": results,
    "opcheck": opcheck,
    "compilation": compilation,
    "gradcheck": gradcheck,
    "sharding": sharding,
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
