"""Sample calls of every op, in minitensor and in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
from minitensor._definitions import define
from minitensor.jax.namespace import find
from sample_calls import cotangents, flat, is_float, mapped

import minitensor as mt


def to_jax(tensor):
    return jnp.asarray(tensor.detach().numpy())


def rebuilt(inputs, arrays):
    """The inputs, with each tensor replaced by the next of these arrays."""
    given = iter(arrays)
    return mapped(lambda _: next(given), inputs)


def as_function(name, sample):
    """The call in JAX as a function of a list of arrays, and the arrays."""
    inputs, attrs = sample
    op = find(name)
    return lambda arrays: flat(op(*rebuilt(inputs, arrays), **attrs)), [to_jax(t) for t in flat(inputs)]


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
    return define(name).mutated is None and name not in {"dropout", "rand_like", "random::key"}


def assert_same(theirs, ours, tolerance=1e-9):
    """The same numbers, shapes and dtypes."""
    assert len(theirs) == len(ours)
    for a, b in zip(theirs, ours, strict=True):
        b = b.detach().numpy() if isinstance(b, mt.Tensor) else np.asarray(b)
        assert isinstance(a, jax.Array)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(np.asarray(a), b, rtol=tolerance, atol=tolerance)
