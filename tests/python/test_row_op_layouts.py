"""`mt.row_op` over several axes of tensors that are in memory in another order."""

import itertools

import numpy as np
import pytest

import minitensor as mt

pytestmark = pytest.mark.usefixtures("registered")

LAYOUTS = {
    "running sums": (lambda x: x.cumsum().max(), lambda x: np.cumsum(x).max()),
    "reverse running sums": (lambda x: x.reverse_cumsum().max(), lambda x: np.cumsum(x[::-1]).max()),
    "running products": (lambda x: x.cumprod().max(), lambda x: np.cumprod(x).max()),
    "positions": (lambda x: (x * x.position()).sum(), lambda x: (x * np.arange(x.size)).sum()),
    "shifts": (lambda x: (x * x.shift(1)).sum(), lambda x: (x[1:] * x[:-1]).sum()),
    "variance": (lambda x: x.var(), np.var),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_several_axes_are_one_row_in_their_order_for_any_layout(name):
    body, expected = LAYOUTS[name]

    @mt.row_op(name="layouts::reduced", axis=None)
    def reduced(x):
        return body(x)

    a = np.random.default_rng(0).standard_normal((3, 4, 5))
    for order in itertools.permutations(range(3)):
        x = mt.permute(mt.asarray(a.transpose(order).copy()), np.argsort(order).tolist())
        assert x.strides == tuple(np.array(a.transpose(order).copy().strides)[np.argsort(order)] // 8)
        np.testing.assert_allclose(reduced(x).item(), expected(a.ravel()), rtol=1e-12)
        rows = [expected(a[:, k].ravel()) for k in range(4)]
        np.testing.assert_allclose(reduced(x, axis=(0, 2)).numpy(), rows, rtol=1e-12)


def test_a_row_that_all_rows_share_is_in_the_order_of_the_axes():
    @mt.row_op(name="layouts::weighted", axis=None, shape="(x: [.., n], weight: [n]) -> [..]")
    def weighted(x, weight):
        return (x * weight).sum()

    @mt.row_op(name="layouts::product", axis=None)
    def product(x, y):
        return (x * y).sum()

    rng = np.random.default_rng(1)
    a, w = rng.standard_normal((2, 3, 4)), rng.standard_normal(24)
    x = mt.asarray(a.T.copy()).T
    np.testing.assert_allclose(weighted(x, mt.asarray(w)).item(), (a.ravel() * w).sum(), rtol=1e-12)
    np.testing.assert_allclose(product(x, mt.asarray(a)).item(), (a * a).sum(), rtol=1e-12)
    b = w.reshape(4, 3, 2)
    np.testing.assert_allclose(product(x, mt.asarray(b)).item(), (a.ravel() * w).sum(), rtol=1e-12)
