"""A call of Python code that a graph repeats as a whole."""

from __future__ import annotations

import contextvars
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from .._grad_mode import set_grad_enabled
from .._minitensor import Device, DType, Tensor, _is_recording, is_grad_enabled, zeros
from ..custom import _build

R = TypeVar("R")


class _Mode(threading.local):
    #: Whether this thread records a branch. Only the shapes and dtypes of its tensors matter then.
    is_sketch = False
    #: The number of branches, one within the other, that contain what this thread records.
    depth = 0


_mode = _Mode()
#: The most branches within one another. Each needs a thread while it is recorded.
_MOST_NESTED = 64


class Kind(NamedTuple):
    """What all branches must have in common for each tensor."""

    shape: tuple[int, ...]
    dtype: DType
    device: Device

    @staticmethod
    def of(t: Tensor) -> Kind:
        return Kind(t.shape, t.dtype, t.device)

    @property
    def is_differentiable(self) -> bool:
        return self.dtype.is_floating_point or self.dtype.is_complex

    def zeros(self) -> Tensor:
        return zeros(self.shape, dtype=self.dtype, device=self.device)


def fresh(t: Tensor) -> Tensor:
    """Returns a contiguous copy."""
    return t.clone() if t.is_contiguous() else t.contiguous()


#: Computes the outputs of a call.
Run = Callable[[Sequence[Tensor]], list[Tensor]]
#: The gradients by input, from inputs, outputs and cotangents.
Backward = Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]], dict[int, Tensor]]

_registering = threading.RLock()
_numbers = itertools.count()


def call(name: str, run: Run, backward: Backward, inputs: Sequence[Tensor], outputs: Sequence[Kind]) -> list[Tensor]:
    """Calls an op whose body is Python code: one call in a graph that is recorded.

    Only inputs with a gradient may require one.
    """

    if not outputs:
        return []

    def compute(inputs: Sequence[Tensor]) -> list[Tensor]:
        return [kind.zeros() for kind in outputs] if _mode.is_sketch else run(inputs)

    # Computed before: user code must not run while the op is registered, because its name is not unique.
    first = [apart(lambda: compute(inputs))]

    def forward(*inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(t.clone() for t in first.pop()) if first else tuple(compute(inputs))

    def gradient(context: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        found = backward(context.inputs, context.outputs, grads)
        return tuple(found.get(i) for i in range(len(context.inputs)))

    names = [f"out{k}" for k in range(len(outputs))]
    doc = f"A call of mt.{name}."
    op = _build(f"control::{name}", forward, [("inputs", "variadic")], [], names, gradient, None, doc)
    with _registering:
        function = op.register()
        try:
            results = function(*inputs)
        finally:
            op.unregister()
    return [results] if isinstance(results, Tensor) else list(results)


class _Done(BaseException):
    """Ends a call that is not recorded."""


def apart(run: Callable[[], R]) -> R:
    """Runs a function without recording. Tensors that it creates cannot be part of a graph."""
    if not _is_recording():
        return run()
    outcome: list[tuple[R | None, BaseException | None]] = []

    def body() -> None:
        outcome.append(_outcome(run))
        # A call that fails is not recorded.
        raise _Done

    op = _build(f"control::apart{next(_numbers)}", body, [], [], ["out"], None, None, "Runs a function.")
    function = op.register()
    try:
        function()
    except _Done:
        pass
    finally:
        op.unregister()
    return _result(outcome)


def elsewhere(run: Callable[[], R]) -> R:
    """Runs a function on a thread that may record a graph, in the same mode."""
    outcome: list[tuple[R | None, BaseException | None]] = []
    is_enabled, context = is_grad_enabled(), contextvars.copy_context()
    depth = _mode.depth + 1
    if depth > _MOST_NESTED:
        raise RecursionError(
            f"mt.jit: branches are nested more than {_MOST_NESTED} deep; a graph has no recursion: write "
            "mt.while_loop, or move the recursion outside of mt.jit"
        )

    def work() -> None:
        _mode.is_sketch, _mode.depth = True, depth
        with set_grad_enabled(is_enabled):
            outcome.append(_outcome(lambda: context.run(run)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return _result(outcome)


def _outcome(run: Callable[[], R]) -> tuple[R | None, BaseException | None]:
    try:
        return run(), None
    except BaseException as error:
        return None, error


def _result(outcome: list[tuple[R | None, BaseException | None]]) -> R:
    ((result, error),) = outcome
    # The traceback of the error refers to an op, whose function refers to the outcome.
    outcome.clear()
    if error is not None:
        raise error
    return result  # type: ignore[return-value]
