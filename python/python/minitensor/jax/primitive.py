"""The primitives of JAX that compute calls and their derivatives.

`call_p` computes a call: an op, or its gradient of any order. `linear_p` computes its directional derivative, which is
linear in the tangents. The transpose of that is the gradient of the next order, which is a call again, so derivatives
of any order and mode consist of these two.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from . import concrete, lowering
from .abstract import UnknownShapeError, abstract_eval
from .batching import batch
from .call import Call, flags

Arrays = Sequence[Any]
#: The abstract array of a result; None if it has no derivatives.
Result: TypeAlias = "jax.core.ShapedArray | None"

call_p = Primitive("minitensor")
call_p.multiple_results = True
linear_p = Primitive("minitensor_derivative")
linear_p.multiple_results = True


def bind(call: Call, arrays: Arrays) -> list[Any]:
    """Computes a call."""
    return list(call_p.bind(*arrays, **call.params))


@functools.lru_cache(4096)
def compiled(call: Call) -> Callable[..., list[Any]]:
    """A compiled function of the arrays of a call."""
    return jax.jit(functools.partial(call_p.bind, **call.params))


def compute(call: Call, arrays: Arrays) -> list[Any]:
    """Computes a call on arrays that have values."""
    try:
        return compiled(call)(*arrays)
    except UnknownShapeError:
        return concrete.compute(call, arrays)


def _impl(*arrays: Any, **params: Any) -> Any:
    return compute(Call(**params), arrays)


call_p.def_impl(_impl)
call_p.def_abstract_eval(abstract_eval)
mlir.register_lowering(call_p, lowering.elsewhere)
mlir.register_lowering(call_p, lowering.on_cpu, platform="cpu")
lowering.uses_devices(call_p)


# Derivatives.


def has_derivatives(x: Any) -> bool:
    """Whether an array or an abstract array has a floating-point or complex dtype."""
    return bool(jnp.issubdtype(x.dtype, jnp.inexact))


def _types(results: Sequence[Any]) -> list[Result]:
    """The abstract arrays of those results that have derivatives."""
    return [r.update(weak_type=False) if has_derivatives(r) else None for r in results]


def is_zero(tangent: Any) -> bool:
    """Whether a tangent or a cotangent is known to be zero."""
    return type(tangent) is ad.Zero or tangent.dtype == jax.dtypes.float0


def zero(x: Any) -> Any:
    """The zero tangent of an array."""
    return ad.Zero(jax.typeof(x).to_tangent_aval())


def _jvp(primals: Arrays, tangents: Arrays, **params: Any) -> tuple[list[Any], list[Any]]:
    this = Call(**params)
    results = bind(this, primals)
    mask = [not is_zero(t) for t in tangents]
    types = _types([jax.typeof(r) for r in results])
    if not any(mask) or not any(types):
        return results, [zero(r) for r in results]
    definition = this.definition
    if definition.no_gradient is not None:
        raise RuntimeError(f"op '{definition.name}' has no gradient: {definition.no_gradient}")
    nonzero = [t for t, m in zip(tangents, mask, strict=True) if m]
    found = iter(_bind_linear(this, nonzero, primals, mask, types))
    return results, [next(found) if t else zero(r) for r, t in zip(results, types, strict=True)]


def _bind_linear(
    call: Call, tangents: Arrays, primals: Arrays, mask: Sequence[bool], results: Sequence[Result]
) -> list[Any]:
    return list(linear_p.bind(*tangents, *primals, **call.params, mask=flags(mask), results=tuple(results)))


ad.primitive_jvps[call_p] = _jvp


class Linear:
    """The parameters of `linear_p`, and its arguments in two parts."""

    def __init__(self, args: Arrays, mask: str, results: Sequence[Result], **params: Any) -> None:
        self.call = Call(**params)
        self.mask = [flag == "1" for flag in mask]
        self.results = results
        count = sum(self.mask)
        self.tangents, self.primals = list(args[:count]), list(args[count:])

    def as_call(self) -> tuple[Call, list[Any]]:
        """The same function as a call, and its arrays."""
        zeros = [ad.zeros_like_aval(r) for r in self.results if r is not None]
        call = self.call.derivative([r is not None for r in self.results], self.mask)
        return call, [*self.tangents, *zeros, *self.primals]


def _linear_impl(*args: Any, **params: Any) -> list[Any]:
    call, arrays = Linear(args, **params).as_call()
    return bind(call, arrays)


def _linear_abstract(*avals: Any, results: Sequence[Result], **params: Any) -> list[Any]:
    return [r for r in results if r is not None]


def _linear_jvp(args: Arrays, tangents: Arrays, **params: Any) -> tuple[list[Any], list[Any]]:
    linear = Linear(args, **params)
    results = list(linear_p.bind(*args, **params))
    first = len(linear.tangents)
    sums = [zero(r) for r in results]
    # The part that is linear in the tangents.
    changes = iter(tangents[:first])
    mask = [m and not is_zero(next(changes)) for m in linear.mask]
    if any(mask):
        nonzero = [t for t in tangents[:first] if not is_zero(t)]
        sums = _bind_linear(linear.call, nonzero, linear.primals, mask, linear.results)
    # The part of the second order.
    inner = [not is_zero(t) for t in tangents[first:]]
    if any(inner):
        call, arrays = linear.as_call()
        mask = [*[False] * (len(arrays) - len(inner)), *inner]
        nonzero = [t for t in tangents[first:] if not is_zero(t)]
        second = _bind_linear(call, nonzero, arrays, mask, _types([jax.typeof(r) for r in results]))
        sums = [ad.add_tangents(a, b) for a, b in zip(sums, second, strict=True)]
    return results, sums


def _linear_transpose(cotangents: Arrays, *args: Any, **params: Any) -> list[Any]:
    linear = Linear(args, **params)
    nothing = [None] * len(linear.primals)
    unknown = [ad.is_undefined_primal(t) for t in linear.tangents]
    if all(is_zero(c) for c in cotangents):
        return [ad.Zero(t.aval) if u else None for t, u in zip(linear.tangents, unknown, strict=True)] + nothing
    given = iter(cotangents)
    passed = [None if r is None else next(given) for r in linear.results]
    present = [c is not None and not is_zero(c) for c in passed]
    wanted = iter(unknown)
    call = linear.call.gradient(present, [m and next(wanted) for m in linear.mask])
    arrays = [conjugate(c) for c, p in zip(passed, present, strict=True) if p]
    found = iter(bind(call, [*arrays, *linear.primals]))
    return [conjugate(next(found)) if u else None for u in unknown] + nothing


def conjugate(x: Any) -> Any:
    """JAX transposes complex functions; gradients of minitensor are their adjoints, as in PyTorch."""
    return jnp.conj(x) if jnp.issubdtype(x.dtype, jnp.complexfloating) else x


linear_p.def_impl(_linear_impl)
linear_p.def_abstract_eval(_linear_abstract)
mlir.register_lowering(linear_p, mlir.lower_fun(_linear_impl, multiple_results=True))
lowering.uses_devices(linear_p)
ad.primitive_jvps[linear_p] = _linear_jvp
ad.primitive_transposes[linear_p] = _linear_transpose


# Batches.


def _batch_call(args: Arrays, dims: Sequence[Any], **params: Any) -> Any:
    this = Call(**params)
    return batch(this, this.roles(), args, dims, set(), bind)


def _batch_linear(args: Arrays, dims: Sequence[Any], *, mask: str, results: Sequence[Result], **params: Any) -> Any:
    this = Call(**params)
    roles = this.roles()
    chosen = [m == "1" for m in mask]
    wanted = [role for role, m in zip(roles, chosen, strict=True) if m]

    def compute(call: Call, arrays: Arrays) -> list[Any]:
        tangents, primals = arrays[: len(wanted)], arrays[len(wanted) :]
        types = _types(abstract_eval(*[jax.typeof(x) for x in primals], **call.params))
        return _bind_linear(call, tangents, primals, chosen, types)

    return batch(this, [*wanted, *roles], args, dims, set(wanted), compute)


batching.primitive_batchers[call_p] = _batch_call
batching.primitive_batchers[linear_p] = _batch_linear
