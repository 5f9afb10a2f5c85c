"""What the tests of `mt.jit` share."""

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
