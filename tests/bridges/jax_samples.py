"""Sample calls of every op, in minitensor and in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
from minitensor._definitions import define
from minitensor._minitensor import _array_function
from minitensor.jax.namespace import find
from sample_calls import flat, is_float, mapped

import minitensor as mt


def to_jax(tensor):
    return jnp.asarray(tensor.detach().numpy())


def rebuilt(inputs, arrays):
    """The inputs, with each tensor replaced by the next of these arrays."""
    given = iter(arrays)
    return mapped(lambda _: next(given), inputs)


def call_ours(name, sample):
    """The results in minitensor, or the error."""
    inputs, attrs = sample
    try:
        return flat(_array_function(name)(*mapped(lambda t: t.detach().clone(), inputs), **attrs))
    except Exception as error:
        return error


def as_function(name, sample):
    """The call in JAX as a function of a list of arrays, and the arrays."""
    inputs, attrs = sample
    op = find(name)
    return lambda arrays: flat(op(*rebuilt(inputs, arrays), **attrs)), [to_jax(t) for t in flat(inputs)]


def cotangents(outputs):
    rng = np.random.default_rng(1)
    return [rng.uniform(0.5, 1.5, t.shape) for t in outputs]


def gradients_of_ours(name, sample):
    """The gradients in minitensor; None if the call fails or has none."""
    inputs, attrs = sample
    leaves = mapped(lambda t: t.detach().clone(), inputs)
    wanted = [t for t in flat(leaves) if is_float(t)]
    for t in wanted:
        t.requires_grad = True
    try:
        outputs = [t for t in flat(_array_function(name)(*leaves, **attrs)) if t.requires_grad]
        if not outputs:
            return None
        given = [mt.Tensor(c).astype(t.dtype) for c, t in zip(cotangents(outputs), outputs, strict=True)]
        found = mt.grad(outputs, wanted, given, allow_unused=True)
    except Exception:
        return None
    return [mt.zeros_like(t) if g is None else g for g, t in zip(found, wanted, strict=True)]


def loss(name, sample):
    """A real function of the floating-point arrays of a call, those arrays, and all arrays."""
    function, arrays = as_function(name, sample)
    floats = [i for i, x in enumerate(arrays) if is_float(x)]

    def weighted(given):
        complete = list(arrays)
        for i, x in zip(floats, given, strict=True):
            complete[i] = x
        outputs = [t for t in function(complete) if is_float(t)]
        return sum((t * c).real.sum() for t, c in zip(outputs, cotangents(outputs), strict=True))

    return weighted, [arrays[i] for i in floats]


def is_usable(name):
    """Whether JAX can call the op: it changes nothing in place, and draws nothing from the global generator."""
    return define(name).mutated is None and name not in {"dropout", "rand_like"}


def assert_same(theirs, ours, tolerance=1e-9):
    """The same numbers, shapes and dtypes."""
    assert len(theirs) == len(ours)
    for a, b in zip(theirs, ours, strict=True):
        b = b.detach().numpy() if isinstance(b, mt.Tensor) else np.asarray(b)
        assert isinstance(a, jax.Array)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(np.asarray(a), b, rtol=tolerance, atol=tolerance)
