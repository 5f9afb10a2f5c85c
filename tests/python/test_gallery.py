"""Tests of the gallery, `examples/gallery`: its ops as a plugin, their values, and its page."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from test_rust_plugin import CARGO, EXAMPLE, build

import minitensor as mt
from minitensor import plugins

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "examples" / "gallery"

pytestmark = [
    pytest.mark.skipif(CARGO is None, reason="there is no cargo to build it with"),
    pytest.mark.usefixtures("registered", "no_plugins_stay"),
]

#: Findings that are expected, by op. The gradient of rounding is 0, but a straight-through gradient is not. An option
#: as expensive as its underlying has no volatility.
EXPECTED = {
    "fake_quantize": {"gradient", "formula"},
    "implied_volatility": {"gradient of aliases"},
}


@pytest.fixture(scope="module")
def library():
    # The folder of the other example, so that the SDK is compiled once.
    return build(folder=GALLERY, target=EXAMPLE / "target", name="gallery")


@pytest.fixture
def ops(library, registered, no_plugins_stay):
    """The loaded plugin."""
    return plugins.load_plugin(library).ops


def test_every_op_passes_opcheck(ops):
    assert len(ops) >= 60
    reports = [mt.testing.opcheck(op, raises=False) for op in ops]
    assert all(report.samples for report in reports)
    assert {report.op: {f.check for f in report.findings} for report in reports if report.findings} == EXPECTED


def test_lennard_jones_passes_opcheck_near_its_minimum(ops):
    mt.testing.opcheck("lennard_jones", mt.Tensor([0.9, 1.1, 1.3, 2.0], dtype="float64"))


def array(*values):
    return np.array(values, dtype=float)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def normal_cdf(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def black_scholes(spot, strike, time, rate, volatility):
    d1 = (math.log(spot / strike) + (rate + volatility**2 / 2) * time) / (volatility * math.sqrt(time))
    d2 = d1 - volatility * math.sqrt(time)
    return spot * normal_cdf(d1) - strike * math.exp(-rate * time) * normal_cdf(d2)


X = array(-2.0, -0.5, 0.0, 0.7, 3.0)
P = array(0.2, 0.5, 0.1, 0.15, 0.05)
LOG_P = np.log(np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]))
#: The call of an op, and its value by another formula.
VALUES = {
    "squareplus": ((X,), {}, (X + np.sqrt(X * X + 4)) / 2),
    "snake": ((X,), {"a": 2.0}, X + np.sin(2 * X) ** 2 / 2),
    "serf": ((X,), {}, X * np.vectorize(math.erf)(np.log1p(np.exp(X)))),
    "rational": ((X, [1.0, 2.0], [0.5]), {}, (1 + 2 * X) / (1 + np.abs(0.5 * X))),
    "focal_loss": ((X, 1.0), {}, -0.25 * (1 - sigmoid(X)) ** 2 * np.log(sigmoid(X))),
    "poly1_loss": ((X, 3), {}, 1 - softmax(X)[3] - np.log(softmax(X)[3])),
    "dice_loss": ((P, P > 0.12), {}, 1 - (2 * 0.85 + 1) / ((P**2).sum() + 3 + 1)),
    "sparsemax": ((array(0.5, 1.0, -3.0),), {}, array(0.25, 0.75, 0)),
    "entmax15": ((array(0.0, 0.0, -9.0),), {}, array(0.5, 0.5, 0)),
    "causal_softmax": ((X, 1), {}, np.append(softmax(X[:2]), [0, 0, 0])),
    "nucleus": ((P,), {"mass": 0.7}, array(1, 1, 0, 0, 0)),
    "discounted_return": ((array(1, 0, 2),), {"gamma": 0.5}, array(1.5, 1, 2)),
    "lambda_return": ((array(1, 0), array(3, 4)), {"gamma": 0.5, "decay": 0.5}, array(1 + 0.75 + 0.25 * 2, 2)),
    "window_weights": ((X, 4), {"radius": 1}, np.append([0, 0, 0], softmax(X[3:]))),
    "quantize_rows": ((array(127, -63.5, 1.2),), {}, (array(127, -64, 1), array(1))),
    "mu_law": ((array(-1, 0, 1),), {}, array(-1, 0, 1)),
    "pre_emphasis": ((array(1, 2, 4),), {"coefficient": 0.5}, array(1, 1.5, 3)),
    "goertzel": ((array(1, -1, 1, -1), 0.5), {}, 16.0),
    "haar": ((array(3, 1, 0, 2),), {}, (array(4, 2) / math.sqrt(2), array(2, -2) / math.sqrt(2))),
    "black_scholes": ((110.0, 100.0, 0.5, 0.03, 0.2), {}, black_scholes(110, 100, 0.5, 0.03, 0.2)),
    "max_drawdown": ((array(1, 4, 3, 5, 2),), {}, 0.6),
    "planck": ((X[3:], 2.0), {}, 2 * X[3:] ** 3 / np.expm1(X[3:] / 2)),
    "crf_partition": ((LOG_P, np.zeros((3, 3))), {}, 0.0),
    "viterbi": ((LOG_P, np.zeros((3, 3))), {}, math.log(0.6 * 0.5 * 0.7)),
    # The paths of two labels over three steps, of which 0 is the blank: 112, 122, 012, 102, 120.
    "ctc": (
        (LOG_P, [1, 2]),
        {},
        -math.log(0.3 * 0.5 * 0.7 + 0.3 * 0.3 * 0.7 + 0.6 * 0.5 * 0.7 + 0.3 * 0.2 * 0.7 + 0.3 * 0.3 * 0.1),
    ),
    "quaternion_product": ((array(0, 1, 0, 0), array(0, 0, 1, 0)), {}, array(0, 0, 0, 1)),
    "rotate": ((array(1, 0, 0), array(0, 0, 1), math.pi / 2), {}, array(0, 1, 0)),
    "haversine": ((0.0, 0.0, math.pi / 2, 0.0), {}, math.pi / 2),
    "student_t_log_pdf": ((X, 1.0), {}, -np.log(np.pi * (1 + X * X))),
    "beta_log_pdf": ((P, 2.0, 3.0), {}, np.log(12 * P * (1 - P) ** 2)),
    "von_mises_log_pdf": ((0.3, 0.0, 1.0), {}, math.cos(0.3) - math.log(2 * math.pi * 1.2660658777520084)),
}


def tensor(value):
    kind = {bool: "bool", int: "int64"}.get(type(value), "float64")
    return mt.Tensor(value, dtype=kind) if not isinstance(value, list) else value


@pytest.mark.parametrize("name", VALUES)
def test_values(ops, name):
    arguments, attributes, expected = VALUES[name]
    is_index = name == "ctc"
    given = [mt.Tensor(a) if is_index and isinstance(a, list) else tensor(a) for a in arguments]
    result = getattr(mt.ops, name)(*given, **attributes)
    pairs = zip(result, expected, strict=True) if isinstance(expected, tuple) else [(result, expected)]
    for got, wanted in pairs:
        np.testing.assert_allclose(np.asarray(got.detach().astype("float64")), wanted, rtol=1e-9, atol=1e-12)


def test_the_gradients_of_a_price_are_the_greeks(ops):
    spot, strike, time, rate = (mt.Tensor(v, dtype="float64") for v in (110.0, 100.0, 0.5, 0.03))
    volatility = mt.Tensor(0.2, dtype="float64")
    spot.requires_grad_(), volatility.requires_grad_()
    price = mt.ops.black_scholes(spot, strike, time, rate, volatility)
    delta, vega = mt.grad(price, [spot, volatility])
    d1 = (math.log(1.1) + 0.05 * 0.5) / (0.2 * math.sqrt(0.5))
    np.testing.assert_allclose(delta.item(), normal_cdf(d1), rtol=1e-12)
    np.testing.assert_allclose(vega.item(), 110 * math.sqrt(0.5 / (2 * math.pi)) * math.exp(-d1 * d1 / 2), rtol=1e-12)


def test_a_volatility_is_implied_by_its_price(ops):
    market = [mt.Tensor(v, dtype="float64") for v in ([90.0, 100.0, 115.0], 100.0, 0.5, 0.03)]
    price = mt.ops.black_scholes(*market, mt.Tensor(0.25, dtype="float64"))
    np.testing.assert_allclose(np.asarray(mt.ops.implied_volatility(price, *market)), 0.25, rtol=1e-9)


def test_steps_change_their_tensors_in_place(ops):
    p, m, total = mt.ones(2), mt.zeros(2), mt.zeros(2)
    g = mt.Tensor([4.0, -0.5])
    mt.ops.lion_step(p, m, g, lr=0.25)
    assert p.tolist() == [0.75, 1.25]
    mt.ops.adagrad_step(p, total, g, lr=0.25)
    assert p.tolist() == [0.5, 1.5] and total.tolist() == [16, 0.25]


def test_the_page_is_current(ops, monkeypatch):
    monkeypatch.syspath_prepend(GALLERY)
    from gallery_page import page

    docs = ROOT / "docs"
    files = page.files(GALLERY, ops)
    stale = [path for path, text in files.items() if not (docs / path).exists() or (docs / path).read_text() != text]
    assert not stale, f"run examples/gallery/generate.py write: {', '.join(stale)}"
    assert {f"gallery/{path.name}" for path in (docs / "gallery").iterdir()} == files.keys() - {"gallery.md"}
    sys.modules.pop("gallery_page", None)
