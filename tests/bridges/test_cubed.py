"""Ops on arrays of Cubed."""

import numpy as np
import pytest

cubed = pytest.importorskip("cubed")

import minitensor as mt  # noqa: E402


@pytest.fixture
def a(rng):
    return rng.normal(size=(6, 5, 4))


def check(lazy, expected):
    assert isinstance(lazy, cubed.Array)
    assert (lazy.dtype, lazy.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(lazy.compute(), expected)


def test_each_block_is_computed(a):
    x = cubed.from_array(a, chunks=(2, 5, 4))
    check(mt.map_blocks("swish", x), mt.ops.swish(a))
    check(mt.ops.add(x, 2.0), a + 2)
    check(mt.map_blocks("add", x, cubed.from_array(a[0], chunks=2)), a + a[0])
    check(mt.map_blocks("layer_norm", x, np.ones(4)), mt.ops.layer_norm(a))
    check(mt.map_blocks("softmax", x, axis=1), mt.ops.softmax(a, axis=1))
    for keepdims in (False, True):
        check(mt.map_blocks("sum", x, axis=(1, 2), keepdims=keepdims), a.sum((1, 2), keepdims=keepdims))
    labels = np.array([[0, 1], [2, 1]])
    check(mt.map_blocks("one_hot", cubed.from_array(labels, chunks=1), num_classes=3), mt.ops.one_hot(labels, 3))


def test_what_cubed_cannot_do_raises(a):
    x = cubed.from_array(a, chunks=(2, 5, 4))
    with pytest.raises(ValueError, match=r"divided into 3 chunks; rechunk the array first: x.rechunk\(\{0: 6\}\)"):
        mt.map_blocks("softmax", x, axis=0)
    with pytest.raises(NotImplementedError, match="op 'sort' has 2 outputs"):
        mt.map_blocks("sort", x)
