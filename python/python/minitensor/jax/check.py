"""The checks of an op in JAX, for `mt.testing.opcheck(op, backends=("jax",))`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.test_util import check_grads

from .._minitensor import Tensor, _array_function
from .abstract import UnknownShapeError
from .namespace import find
from .op import Op

#: The inputs and attributes of a call in minitensor.
Sample = tuple[list[Any], dict[str, Any]]
Finding = tuple[str, str]


def check(name: str, samples: list[Sample]) -> Iterator[Finding]:
    """Yields the faults of an op: pairs of check and message.

    The results are those of minitensor, in eager and compiled code. `jax.vmap` equals a loop. Gradients and directional
    derivatives agree with finite differences. With several devices, sharded arrays have the same results. Samples that
    the op rejects are skipped.
    """
    op = find(name)
    if op.definition.mutated is not None:
        return
    failed = set[str]()
    with jax.enable_x64(True):
        for sample in samples:
            try:
                case = Case(op, sample)
            except _REJECTED:
                continue
            for check, run in _CHECKS.items():
                try:
                    if check not in failed:
                        run(case)
                except UnknownShapeError:
                    # Its results have shapes that depend on values.
                    continue
                except Exception as error:
                    failed.add(check)
                    yield f"jax: {check}", f"{type(error).__name__}: {error}"


#: The errors of an op that rejects its arguments.
_REJECTED = (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError)


class Case:
    """A call as a function of the arrays among its inputs, and its results in minitensor."""

    def __init__(self, op: Op, sample: Sample) -> None:
        inputs, attributes = sample
        self.op = op
        self._inputs = inputs
        self._attributes = attributes
        self.arrays = [jnp.asarray(t.detach().numpy()) for t in flat(inputs)]
        results = _array_function(op.definition.name)(*_mapped(lambda t: t.detach().clone(), inputs), **attributes)
        self.expected = [t.detach().numpy() for t in flat(results)]

    def __call__(self, arrays: list[Any]) -> list[Any]:
        """The results in JAX."""
        given = iter(arrays)
        return flat(self.op(*_mapped(lambda _: next(given), self._inputs), **self._attributes))

    @property
    def has_gradient(self) -> bool:
        """Whether the op has derivatives by some of its inputs, and differences of its results are numbers."""
        is_finite = all(np.isfinite(r).all() for r in self.expected if np.issubdtype(r.dtype, np.inexact))
        return is_finite and self.op.definition.no_gradient is None and any(_is_double(x) for x in self.arrays)

    def smooth(self, arrays: list[Any]) -> list[Any]:
        """The results of floating dtype, as a function of the arrays of float64."""
        given = iter(arrays)
        complete = [next(given) if _is_double(x) else x for x in self.arrays]
        return [r for r in self(complete) if jnp.issubdtype(r.dtype, jnp.floating)]


def _results(case: Case) -> None:
    _compare(case(case.arrays), case.expected)


def _compiled(case: Case) -> None:
    _compare(jax.jit(case)(case.arrays), case.expected)


def _batches(case: Case) -> None:
    if case.arrays:
        several = [jnp.stack([x, x, x]) for x in case.arrays]
        _compare(jax.vmap(case)(several), [np.stack([r] * 3) for r in case.expected])


def _gradients(case: Case) -> None:
    arrays = [x for x in case.arrays if _is_double(x)]
    if case.has_gradient and jax.eval_shape(case.smooth, arrays):
        check_grads(lambda *given: case.smooth(list(given)), arrays, order=1, modes=["rev"], atol=1e-4, rtol=1e-4)


def _sharded(case: Case) -> None:
    """The results and gradients for arrays whose first dimensions are divided between two devices, if there are two."""
    devices = jax.devices()[:2]
    if len(devices) < 2:
        return
    mesh = Mesh(np.array(devices), ("d",))
    # The dtypes of parts depend on the global option, not on that of this thread.
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", True)
    try:
        _compare_sharded(case, mesh)
    finally:
        jax.config.update("jax_enable_x64", before)


def _compare_sharded(case: Case, mesh: Mesh) -> None:
    def put(x: Any) -> Any:
        is_even = x.ndim > 0 and x.shape[0] > 0 and x.shape[0] % 2 == 0
        return jax.device_put(x, NamedSharding(mesh, PartitionSpec("d") if is_even else PartitionSpec()))

    _compare(jax.jit(case)([put(x) for x in case.arrays]), case.expected)
    arrays = [x for x in case.arrays if _is_double(x)]
    if case.has_gradient and jax.eval_shape(case.smooth, arrays):
        gradient = jax.jit(jax.grad(lambda given: sum(jnp.sin(r).sum() for r in case.smooth(given))))
        _compare(gradient([put(x) for x in arrays]), [np.asarray(g) for g in gradient(arrays)])


_CHECKS: dict[str, Callable[[Case], None]] = {
    "results": _results,
    "jit": _compiled,
    "vmap": _batches,
    "gradient": _gradients,
    "sharding": _sharded,
}


def _is_double(x: Any) -> bool:
    return bool(x.dtype == "float64")


def _compare(found: list[Any], expected: list[Any]) -> None:
    if len(found) != len(expected):
        raise AssertionError(f"expected {len(expected)} results, got {len(found)}")
    for a, b in zip(found, expected, strict=True):
        if (a.shape, str(a.dtype)) != (b.shape, str(b.dtype)):
            raise AssertionError(f"expected {b.dtype} {b.shape}, got {a.dtype} {a.shape}")
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6, atol=1e-6)


def flat(items: Any) -> list[Any]:
    """All tensors in nested lists, without the absent ones."""
    if isinstance(items, list | tuple):
        return [t for item in items for t in flat(item)]
    return [] if items is None else [items]


def _mapped(change: Callable[[Tensor], Any], inputs: Any) -> Any:
    """The inputs, with each tensor changed."""
    if isinstance(inputs, list):
        return [_mapped(change, i) for i in inputs]
    return None if inputs is None else change(inputs)
