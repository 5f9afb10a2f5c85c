"""Helpers of the tests of control flow."""

import numpy as np

import minitensor as mt


def arrays(value):
    """The elements of all tensors in a result."""
    if isinstance(value, mt.Tensor):
        return value.detach().numpy()
    if isinstance(value, dict):
        return {name: arrays(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [arrays(item) for item in value]
    return value


def assert_close(got, expected, rtol=1e-5):
    if isinstance(expected, list):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_close(a, b, rtol)
    elif isinstance(expected, dict):
        assert list(got) == list(expected)
        assert_close(list(got.values()), list(expected.values()), rtol)
    elif isinstance(expected, np.ndarray):
        assert got.shape == expected.shape and got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=1e-6)
    else:
        assert got == expected


def assert_same(f, *calls, graphs=1):
    """The results of one graph are those of the function, for all arguments in any order."""
    jitted = mt.jit(f)
    for args in (*calls, *reversed(calls), *calls):
        assert_close(arrays(jitted(*args)), arrays(f(*args)))
    if graphs is not None:
        assert len(jitted.graphs) == graphs
    return jitted


def gradients(f, *args):
    """The result of a function, and the gradients of the sum of its squares."""
    leaves = [t.detach().requires_grad_(t.dtype.is_floating_point) for t in args]
    result = f(*leaves)
    results = result if isinstance(result, (list, tuple)) else [result]
    loss = sum((t * t).sum() for t in results if t.requires_grad)
    found = mt.grad(loss, [t for t in leaves if t.requires_grad], allow_unused=True)
    # A graph returns zeros where eager mode finds that there is no path.
    return [result, *(mt.zeros_like(t) if g is None else g for t, g in zip(leaves, found, strict=False))]


def assert_same_gradients(f, *calls):
    """Gradients through a graph, and inside of one, are those of the function."""
    jitted = mt.jit(f)
    inside = mt.jit(lambda *args: gradients(f, *args))
    for args in (*calls, *reversed(calls), *calls):
        expected = arrays(gradients(f, *args))
        assert_close(arrays(gradients(jitted, *args)), expected)
        assert_close(arrays(inside(*args)), expected)
    assert len(jitted.graphs) == len(inside.graphs) == 1


def randn(*shape, dtype="float32"):
    return mt.Tensor(np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype(dtype))


def count(jitted, name):
    (graph,) = jitted.graphs
    return graph.ops.count(f"control::{name}")


POSITIVE, NEGATIVE = mt.Tensor([1.0, 2.0, 3.0]), mt.Tensor([-1.0, -2.0, -3.0])
