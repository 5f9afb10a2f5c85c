"""Tensors of the tests of `mt.lazy`, and comparisons of their bits."""

import numpy as np

import minitensor as mt


def randn(*shape, seed=0, **options):
    rng = np.random.default_rng(seed + len(shape) + sum(shape))
    return mt.Tensor(rng.standard_normal(shape).astype("float32"), **options)


def bits(t):
    t = t.detach()
    return (t.astype("float32") if t.dtype == mt.bfloat16 else t).numpy().tobytes()


def assert_same(got, expected):
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert (a.shape, a.dtype, a.strides) == (b.shape, b.dtype, b.strides)
        assert a.requires_grad == b.requires_grad
        assert bits(a) == bits(b)


def computed(function):
    """The names of the ops that run."""
    with mt.profiler.profile() as p:
        function()
    return [event.name for event in p.events()]
