"""The checks of an op on NumPy arrays, for `mt.testing.opcheck(op, backends=("numpy",))`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._definitions import define
from .._minitensor import Tensor, _array_function
from .rule import core_rule
from .ufunc import Ufunc

__all__ = ["check"]

#: The inputs and attributes of a call.
Sample = tuple[list[Any], dict[str, Any]]
Finding = tuple[str, str]


def check(name: str, samples: list[Sample]) -> Iterator[Finding]:
    """Yields the faults of an op: pairs of check and message.

    A call on arrays has the results of the call on tensors, with the same dtypes and shapes. It changes the same
    inputs, or raises
    an error of the same type. The results are arrays that share no memory with the inputs. If the op is a ufunc, its
    ufunc has the
    same results.
    """
    call = _array_function(name)
    ufunc = _ufunc(name)
    for inputs, attrs in samples:
        tensors, again = (_copied(inputs, lambda t: t.detach().clone()) for _ in range(2))
        try:
            arrays = _copied(inputs, lambda t: t.detach().clone().numpy())
        except TypeError:
            # NumPy does not have the dtype.
            continue
        where = f"for {_described(inputs)} with {attrs}"
        expected, error = _attempt(call, tensors, attrs)
        results, other = _attempt(call, arrays, attrs)
        if type(error) is not type(other):
            yield "errors on arrays", f"{where}: tensors raise {error!r}, arrays raise {other!r}"
        if error is not None or other is not None:
            continue
        is_random = any(_differ(a, b) for a, b in zip(expected, _attempt(call, again, attrs)[0], strict=True))
        yield from _compared("results on arrays", where, expected, results, is_random)
        yield from _compared("inputs that are changed", where, _flat(tensors), _flat(arrays), False)
        inputs_of_call = [x for x in _flat(arrays) if isinstance(x, np.ndarray)]
        is_changed = define(name).mutated is not None
        if not is_changed and any(np.shares_memory(r, x) for r in results for x in inputs_of_call):
            yield "memory of the results", f"{where}: a result shares memory with an input"
        if ufunc is not None and not is_random:
            outs = tuple(np.empty_like(r) for r in results)
            made = ufunc(*arrays, **attrs, out=outs)
            yield from _compared("results of the ufunc", where, expected, _flat([made]), False)


def _ufunc(name: str) -> Ufunc | None:
    try:
        core_rule(define(name), {}, "as_ufunc")
    except TypeError:
        return None
    return Ufunc(name)


def _copied(inputs: list[Any], copy: Callable[[Tensor], Any]) -> list[Any]:
    """Returns the inputs with copies of the tensors."""
    return [_copied(x, copy) if isinstance(x, list) else copy(x) if isinstance(x, Tensor) else x for x in inputs]


def _flat(values: Any) -> list[Any]:
    """Returns the values in lists and tuples, without absent ones."""
    if isinstance(values, list | tuple):
        return [item for value in values for item in _flat(value)]
    return [] if values is None else [values]


def _attempt(call: Callable[..., Any], inputs: list[Any], attrs: dict[str, Any]) -> tuple[list[Any], Exception | None]:
    try:
        return _flat([call(*inputs, **attrs)]), None
    except Exception as error:
        return [], error


def _compared(kind: str, where: str, expected: list[Any], results: list[Any], is_random: bool) -> Iterator[Finding]:
    if len(expected) != len(results):
        yield kind, f"{where}: expected {len(expected)} arrays, got {len(results)}"
        return
    for tensor, array in zip(expected, results, strict=True):
        if not isinstance(tensor, Tensor):
            continue
        if not isinstance(array, np.ndarray):
            yield kind, f"{where}: expected an array, got {type(array).__name__}"
        elif (str(tensor.dtype), tensor.shape) != (array.dtype.name, array.shape):
            yield kind, f"{where}: expected {tensor.dtype} {tensor.shape}, got {array.dtype} {array.shape}"
        elif not is_random and _differ(tensor, array):
            yield kind, f"{where}: the values differ"


def _differ(a: Any, b: Any) -> bool:
    """Returns whether the elements differ in any bit."""
    first, second = (np.ascontiguousarray(x.detach().numpy() if isinstance(x, Tensor) else x) for x in (a, b))
    return first.tobytes() != second.tobytes() and not np.array_equal(first, second, equal_nan=first.dtype.kind in "fc")


def _described(inputs: list[Any]) -> str:
    return ", ".join(f"{x.dtype} {x.shape}" if isinstance(x, Tensor) else repr(x) for x in _flat(inputs))
