"""Helpers of the tests of `mt.jit`."""

import numpy as np

import minitensor as mt


def bits(value):
    """The bytes of all tensors in a result."""
    if isinstance(value, mt.Tensor):
        value = value.detach()
        return (value.astype("float32") if value.dtype == mt.bfloat16 else value).numpy().tobytes()
    if isinstance(value, dict):
        return {name: bits(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [bits(item) for item in value]
    return value


def assert_same(f, *calls, graphs=None):
    """Each call of the function under `mt.jit` gives the bits that the function gives."""
    jitted = mt.jit(f)
    for args in calls:
        assert bits(jitted(*args)) == bits(f(*args))
    for args in reversed(calls):
        assert bits(jitted(*args)) == bits(f(*args))
    if graphs is not None:
        assert len(jitted.graphs) == graphs
    return jitted


def randn(*shape, **options):
    return mt.Tensor(np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype("float32"), **options)


def in_place(x):
    """Changes parts and a transpose of a tensor, which other results share."""
    y = x * 2
    y[1:] += x[:-1]
    y.T[0] *= 3
    z = y + 1
    y[0, 0] = 7
    return y, z, y.sum(axis=0)
