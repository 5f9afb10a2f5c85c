"""Helpers of the tests of `mt.vmap`."""

import numpy as np
from jit_checks import in_place

import minitensor as mt

SIZE = 3


def randn(*shape, seed=0, **options):
    rng = np.random.default_rng(seed + len(shape) + sum(shape))
    return mt.Tensor(rng.standard_normal(shape), **options)


def looped(f, *args, in_axes=0):
    """The results of a function for each example, stacked."""
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    size = next(t.shape[a] for t, a in zip(args, axes, strict=True) if a is not None)
    parts = [
        f(*(t if a is None else mt.ops.moveaxis(t, a, 0)[k] for t, a in zip(args, axes, strict=True)))
        for k in range(size)
    ]
    if isinstance(parts[0], tuple):
        return tuple(mt.ops.stack(list(each)) for each in zip(*parts, strict=True))
    return mt.ops.stack(parts)


def assert_close(got, expected):
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_close(a, b)
        return
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-12)


def assert_same(f, *args, in_axes=0):
    """The results of `vmap` are those of a loop, and so are the gradients of all arguments."""
    assert_close(mt.vmap(f, in_axes=in_axes)(*args), looped(f, *args, in_axes=in_axes))
    leaves = [t.detach().requires_grad_() if t.dtype in (mt.float32, mt.float64) else t for t in args]
    floats = [t for t in leaves if t.requires_grad]

    def gradients(results):
        results = [t for t in (results if isinstance(results, tuple) else (results,)) if t.requires_grad]
        if not results or not floats:
            return []
        weights = [mt.Tensor(np.cos(np.arange(t.numel())).reshape(t.shape)).astype(t.dtype) for t in results]
        given = mt.grad(results, floats, weights, allow_unused=True)
        return [g if g is not None else mt.zeros_like(t) for g, t in zip(given, floats, strict=True)]

    try:
        expected = gradients(looped(f, *leaves, in_axes=in_axes))
    except RuntimeError as error:
        # The function changes in place what its gradient needs.
        assert "in place" in str(error)
        return
    assert_close(gradients(mt.vmap(f, in_axes=in_axes)(*leaves)), expected)


def a_constant_that_changes(x):
    total = mt.zeros(4, dtype="float64")
    for k in range(3):
        total[k] = x[k, 0]
        total += x[1]
    return total


def masked(x):
    return mt.ops.where(x > 0, x, x.exp())


FUNCTIONS = {
    "elements": lambda x: (x * 2 + 1).tanh() * x.sigmoid() - x,
    "sum": lambda x: x.sum(),
    "sum of an axis": lambda x: x.sum(axis=0) + x.mean(axis=1),
    "keepdims": lambda x: x - x.max(axis=-1, keepdims=True),
    "softmax": lambda x: mt.ops.softmax(x, axis=0),
    "norm": lambda x: mt.ops.layer_norm(x, mt.ones(4, dtype="float64"), mt.zeros(4, dtype="float64")),
    "matmul": lambda x: x @ x.T @ x,
    "matrix and vector": lambda x: x @ x[0] + x[1] @ x,
    "reshape": lambda x: x.reshape(2, 8).reshape(-1),
    "reshape a transposed": lambda x: x.T.reshape(-1) * 2,
    "axes": lambda x: mt.ops.moveaxis(x.unsqueeze(1), -1, 0).squeeze(),
    "expand": lambda x: mt.ops.expand(x[0], [5, 4]) * x[1],
    "broadcast": lambda x: x[0] + x[:, 0].reshape(4, 1) * x[0, 0],
    "index": lambda x: x[1:3, ::2] + x[-1, 1],
    "reversed": lambda x: x[::-1],
    "list of positions": lambda x: x[mt.Tensor([2, 0])],
    "concat": lambda x: mt.ops.concat([x, mt.ones(1, 4, dtype="float64"), x * 2], axis=0),
    "stack": lambda x: mt.ops.stack([x[0], x[1], mt.zeros(4, dtype="float64")], axis=-1),
    "pad": lambda x: mt.ops.pad(x, [1, 2], value=3.0),
    "roll": lambda x: mt.ops.roll(x, 1, axis=1),
    "sort": lambda x: mt.ops.sort(x, axis=0)[0],
    "cumsum": lambda x: mt.ops.cumsum(x, axis=0),
    "where": masked,
    "gather": lambda x: mt.ops.gather(x, mt.Tensor([[0], [1], [2], [3]]), axis=-1),
    "prod": lambda x: mt.ops.prod(x, axis=1),
    "triangle": lambda x: mt.ops.tril(x),
    "dtypes": lambda x: x.astype("float32").astype("float64") + 1,
    "detached": lambda x: x * x.detach(),
    "no gradient": lambda x: x.detach() * 2,
    "several results": lambda x: (x.sum(), x * 2, x[0]),
    "the argument": lambda x: x,
    "a constant": lambda x: mt.ones(2, dtype="float64"),
    "in place": in_place,
    "constant that changes": a_constant_that_changes,
    "convolution": lambda x: mt.ops.conv1d(x.reshape(1, 2, 8), mt.ones(3, 2, 3, dtype="float64"), None),
    "convolution by the example": lambda x: mt.ops.conv1d(mt.ones(1, 2, 9, dtype="float64"), x.reshape(2, 2, 4), None),
}
