"""Tests of the ops in Python."""

from pathlib import Path

import minitensor as mt
import my_ops
import numpy as np
import pytest

if not mt.plugins.is_plugin_loaded("my_ops"):
    mt.plugins.load_plugin(my_ops.library())
NAMES = sorted(mt.plugins.get_plugin_info("my_ops").ops)


@pytest.mark.parametrize("name", NAMES)
def test_opcheck_finds_nothing(name):
    mt.testing.opcheck(name)


@pytest.mark.parametrize("name", NAMES)
def test_an_op_has_a_stub(name):
    stub = Path(my_ops.__file__).with_suffix(".pyi").read_text()
    assert f"def {name.removeprefix('my_ops::')}(" in stub


def test_values_are_those_of_numpy():
    x = np.random.default_rng(0).normal(size=(3, 5))
    np.testing.assert_allclose(my_ops.squareplus(x, b=2.0), (x + np.sqrt(x * x + 2.0)) / 2)
    e = np.exp(x / 0.5)
    np.testing.assert_allclose(my_ops.tempered_softmax(x, temperature=0.5), e / e.sum(-1, keepdims=True))
    average, expected = np.zeros(3), []
    for column in x.T:
        average = 0.9 * average + 0.1 * column
        expected.append(average)
    np.testing.assert_allclose(my_ops.moving_average(x), np.stack(expected, -1))


def test_values_of_rows_are_those_of_numpy():
    rng = np.random.default_rng(1)
    x, strength, weight = rng.normal(size=(3, 5)), rng.uniform(size=3), rng.normal(size=5)
    np.testing.assert_allclose(my_ops.free_energy(x, temperature=0.5), -0.5 * np.log(np.exp(x / -0.5).sum(-1)))
    square = (x * x).mean(-1, keepdims=True)
    np.testing.assert_allclose(my_ops.damped(x, strength), x / (1 + strength[:, None] * square))
    np.testing.assert_allclose(my_ops.rms_norm(x, weight, eps=0.1), x / np.sqrt(square + 0.1) * weight)


# Row to row, row to scalar, with a scalar per row, with weights that all rows share.
ROWS = {"tempered_softmax": [(2, 4)], "free_energy": [(2, 4)], "damped": [(2, 4), (2,)], "rms_norm": [(2, 4), (4,)]}


@pytest.mark.parametrize("name", ROWS)
def test_rows_have_second_derivatives(name):
    rng = np.random.default_rng(2)
    tensors = [mt.Tensor(rng.uniform(0.5, 2.0, size=shape)) for shape in ROWS[name]]
    mt.testing.gradcheck(getattr(my_ops, name), tensors, orders=2)


def test_a_model_learns():
    rng = np.random.default_rng(0)
    x, target = mt.Tensor(rng.normal(size=(64, 8))), mt.Tensor(rng.normal(size=(64, 1)))
    layer = mt.nn.Linear(8, 1, dtype=mt.float64)
    optimizer = mt.optim.Adam(layer.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = ((my_ops.moving_average(layer(my_ops.squareplus(x)).T, decay=0.1).T - target) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
