"""`scan`: a loop over the first axis of tensors, that is one call of a graph."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import ops
from .._grad_mode import no_grad
from .._minitensor import Tensor, _is_recording, is_grad_enabled, zeros
from . import tree
from .branch import Branch, captures_of, detached_except
from .call import Kind, apart, call
from .values import Signature, copied, differentiable, expect_functions, tensors_in


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Calls `carry, y = f(carry, x)` for each `x` along the first axis of `xs`. Returns the last carry and all ys.

    `init`, `xs` and the results are tensors, or lists, tuples and dicts of them. The first carry is `init`. The carry
    keeps its structure, shapes and dtypes. The ys are stacked along a new first axis. Without `xs`, `x` is None, and
    `length` is the number of steps. With `reverse`, the steps go from the last `x` to the first, and the ys have the
    order of `xs`. With no steps, `f` runs once with zeros, to find the structure of its y.

    Under `mt.jit`, this is one call of any length. Its gradient is one call, too: it computes each step again from the
    carry before it, which is saved. `f` has the limits of the functions of `mt.cond`.

    >>> import minitensor as mt
    >>> @mt.jit
    ... def cumulative_product(xs):
    ...     return mt.scan(lambda carry, x: (carry * x, carry * x), mt.ones(()), xs)
    >>> cumulative_product(mt.Tensor([1.0, 2.0, 3.0, 4.0]))
    (tensor(24.), tensor([ 1.,  2.,  6., 24.]))
    """
    expect_functions({"mt.scan: f": f})
    carries, rows = tensors_in("mt.scan", init), tensors_in("mt.scan", xs)
    count = _length(rows, length)
    step = functools.partial(_step, f, Signature.of(init))
    if count == 0:
        example = tree.replaced(xs, (zeros(t.shape[1:], dtype=t.dtype, device=t.device) for t in iter(rows)))
        with no_grad():
            _, y = step(init, example)
        ys: list[Tensor] = []
        rebuild = tree.rebuilder(y, ys, "mt.scan: f")
        empty = (zeros((0, *t.shape), dtype=t.dtype, device=t.device) for t in ys)
        return copied("mt.scan: init", init), rebuild(empty)
    if not _is_recording() or not carries + rows:
        return _each(step, init, xs, rows, range(count)[:: -1 if reverse else 1])
    captures = captures_of([f], (init, xs), (carries + rows)[0].device)

    def arguments(tensors: list[Tensor]) -> Sequence[Any]:
        items = iter(tensors)
        return tree.replaced(init, items), tree.replaced(xs, items)

    recorded = _recorded_step("mt.scan: f", step, arguments, carries, rows, captures=captures)
    inputs = [*carries, *rows, *captures]
    results = _steps(recorded, len(carries), len(rows), inputs, count, reverse)
    carry, y = recorded.rebuild(iter(results))
    return carry, y


def _each(
    step: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Any, rows: Sequence[Tensor], order: range
) -> tuple[Any, Any]:
    """`scan` as plain Python."""
    found: list[tuple[tree.Rebuild, list[Tensor]]] = []
    first: Signature | None = None
    for i in order:
        carry, y = step(carry, tree.replaced(xs, (t[i] for t in iter(rows))))
        ys: list[Tensor] = []
        found.append((tree.rebuilder(y, ys, "mt.scan: f"), ys))
        first = first or Signature.of(y)
        first.check("mt.scan: f must return a y of the same structure, shapes and dtypes in each step", y)
    if order.step < 0:
        found.reverse()
    stacked = (ops.stack(list(column)) for column in zip(*(ys for _, ys in found), strict=True))
    return copied("mt.scan: f", carry), found[0][0](stacked)


def _recorded_step(
    where: str,
    step: Callable[..., Any],
    arguments: Callable[[list[Tensor]], Sequence[Any]],
    carries: Sequence[Tensor],
    rows: Sequence[Tensor],
    others: Sequence[Tensor] = (),
    captures: Sequence[Tensor] = (),
    parent: Branch | None = None,
) -> Branch:
    """Records a step of a scan. If it has a gradient, it also returns the carry that it gets."""
    has_gradient = is_grad_enabled() and any(t.requires_grad for t in (*carries, *rows, *others, *captures))

    def samples() -> list[Tensor]:
        first = [t.detach()[0].requires_grad_(t.requires_grad) for t in rows]
        # The carry of a later step depends on all inputs.
        needs = [has_gradient and Kind.of(t).is_differentiable for t in carries]
        return [*(t.detach().requires_grad_(need) for t, need in zip(carries, needs, strict=True)), *first, *others]

    kept = len(carries) if has_gradient else 0
    return Branch(where, step, arguments, apart(samples), captures, kept, parent)


def _steps(
    step: Branch, num_carries: int, num_rows: int, inputs: Sequence[Tensor], length: int, reverse: bool
) -> list[Tensor]:
    """Calls all steps. Returns the last carry, and the stacked other results."""
    end = num_carries + num_rows
    order = range(length)[:: -1 if reverse else 1]

    def run(inputs: Sequence[Tensor]) -> list[Tensor]:
        carry, rest = list(inputs[:num_carries]), inputs[end:]
        rows = [t.contiguous() for t in inputs[num_carries:end]]
        found = []
        for i in order:
            results = step.run([*carry, *(t[i] for t in rows), *rest])
            carry = results[:num_carries]
            found.append(results[num_carries:])
        if reverse:
            found.reverse()
        return [*carry, *(ops.stack(list(column)) for column in zip(*found, strict=True))]

    def backward(inputs: Sequence[Tensor], outputs: Sequence[Tensor], grads: Sequence[Tensor]) -> dict[int, Tensor]:
        rows, rest = inputs[num_carries:end], inputs[end:]
        # The carry before each step.
        carries = outputs[len(outputs) - num_carries :]
        cotangents = differentiable(grads[:num_carries], step.outputs[:num_carries])
        of_rows = differentiable(grads[num_carries:], step.outputs[num_carries:])
        of_carry, of_row, of_rest = (
            [i for i in step.wrt if i in part]
            for part in (range(num_carries), range(num_carries, end), range(end, len(inputs)))
        )
        totals = [Kind.of(inputs[i]).zeros() for i in of_rest]
        counts = (len(cotangents), len(totals), end, len(of_rows), len(rest))

        def back(*tensors: Tensor) -> list[Tensor]:
            cotangents, totals, values, of_values, rest = _split(tensors, counts)
            grads = step.gradient([*values, *rest], [*cotangents, *of_values], step.wrt)
            found = dict(zip(step.wrt, grads, strict=True))
            totals = [total + found[i] for total, i in zip(totals, of_rest, strict=True)]
            return [*(found[i] for i in of_carry), *totals, *(found[i] for i in of_row)]

        values = [*carries, *rows, *of_rows]
        where = f"the gradient of {step.where}"
        carry = [*cotangents, *totals]
        recorded = _recorded_step(where, back, tuple, carry, values, rest, parent=step)
        results = _steps(recorded, len(carry), len(values), [*carry, *values, *rest], length, not reverse)
        return dict(zip([*of_carry, *of_rest, *of_row], results, strict=False))

    stacked = [Kind((length, *shape), dtype, device) for shape, dtype, device in step.outputs[num_carries:]]
    outputs = [*step.outputs[:num_carries], *stacked]
    return call("scan", run, backward, detached_except(inputs, step.wrt), outputs)


def _split(tensors: Sequence[Tensor], counts: Sequence[int]) -> Iterator[Sequence[Tensor]]:
    """Yields parts of these sizes."""
    items = iter(tensors)
    return (list(itertools.islice(items, count)) for count in counts)


def _step(f: Callable[[Any, Any], tuple[Any, Any]], expected: Signature, carry: Any, x: Any) -> tuple[Any, Any]:
    result = f(carry, x)
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"mt.scan: f must return a pair (carry, y), got {tree.described(result)}")
    expected.check("mt.scan: f must return a carry of the structure, shapes and dtypes of init", result[0])
    return result


def _length(rows: Sequence[Tensor], length: int | None) -> int:
    """Returns the number of steps."""
    if any(t.ndim == 0 for t in rows):
        raise ValueError("mt.scan: each tensor in xs must have an axis to go along, got shape (); put it in init")
    sizes = sorted({t.shape[0] for t in rows})
    if len(sizes) > 1:
        raise ValueError(f"mt.scan: the tensors in xs must have the same size along axis 0, got {sizes}")
    if length is None:
        if not sizes:
            raise ValueError("mt.scan: expected a tensor in xs, or length, the number of steps")
        return sizes[0]
    if not isinstance(length, int) or isinstance(length, bool) or length < 0:
        raise ValueError(f"mt.scan: length must be an integer of at least 0, got {length!r}")
    if sizes and sizes[0] != length:
        raise ValueError(f"mt.scan: length is {length}, but the tensors in xs have size {sizes[0]} along axis 0")
    return length
