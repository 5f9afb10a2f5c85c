"""Arguments that show an op well: the range of an input, or a row."""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class Range(NamedTuple):
    """The range of one input of an elementwise op, and the values of its other arguments."""

    low: float = -4.0
    high: float = 4.0
    along: str | None = None
    fixed: dict[str, Any] = {}


COUNT = 48
#: A wave that grows, and a series of prices.
WAVE = [math.sin(0.5 * i) * (0.4 + i / 32) for i in range(COUNT)]
PRICE = [10 + 0.05 * i + 2 * math.sin(0.35 * i) + 0.6 * math.sin(1.7 * i) for i in range(COUNT)]
RAMP = [i / (COUNT - 1) for i in range(COUNT)]
PROBABILITY = [math.exp(2 * v) / sum(math.exp(2 * w) for w in WAVE) for v in WAVE]

#: Elementwise ops whose plot needs more than the defaults.
RANGES: dict[str, Range] = {
    "rational": Range(fixed={"numerator": [0.0, 0.5, 0.5], "denominator": [0.2, 0.1]}),
    "focal_loss": Range(fixed={"label": 1.0}),
    "pinball_loss": Range(along="prediction", fixed={"target": 0.0, "quantile": 0.8}),
    "log_cosh": Range(fixed={"target": 0.0}),
    "wing_loss": Range(-20, 20, fixed={"target": 0.0}),
    "barron_loss": Range(fixed={"alpha": -2.0}),
    "evidential_loss": Range(fixed={"mean": 0.0, "alpha": 2.0}),
    "normal_crps": Range(along="target", fixed={"mean": 0.0}),
    "dynamic_tanh": Range(fixed={"bias": 0.0}),
    "mu_law": Range(-1, 1, fixed={"mu": 16.0}),
    "fake_quantize": Range(-2, 2, fixed={"scale": 0.25, "low": -4.0, "high": 3.0}),
    "log_quantize": Range(-4, 4),
    "black_scholes": Range(50, 150, fixed={"strike": 100.0, "rate": 0.03, "volatility": 0.2}),
    "lennard_jones": Range(0.95, 2.5),
    "morse": Range(0.4, 5),
    "planck": Range(0.01, 12),
    "van_der_waals": Range(0.6, 4, along="volume"),
    "fermi_dirac": Range(-4, 6),
    "haversine": Range(-3, 3, along="lon2", fixed={"lat1": 0.5, "lon1": 0.0, "lat2": 0.3}),
    "box_distance": Range(-3, 3, fixed={"y": 0.47}),
    "student_t_log_pdf": Range(-6, 6, fixed={"freedom": 3.0}),
    "gumbel_log_pdf": Range(-2, 6, fixed={"location": 0.0}),
    "von_mises_log_pdf": Range(-3.14, 3.14, fixed={"mean": 0.0, "concentration": 2.0}),
    "gamma_log_pdf": Range(0.05, 8, fixed={"shape": 2.0}),
    "beta_log_pdf": Range(0.02, 0.98, fixed={"a": 2.0, "b": 3.0}),
    "cauchy_log_pdf": Range(-6, 6, fixed={"location": 0.0}),
    "logistic_log_pdf": Range(-6, 6, fixed={"location": 0.0}),
    "negative_binomial_log_pmf": Range(0, 20, fixed={"successes": 5.0, "logit": 0.0}),
}

#: Rows whose op is drawn along the row: the arguments, the first of which is shown.
ROWS: dict[str, dict[str, Any]] = {
    "l2_normalize": {"x": WAVE},
    "centered_rms_norm": {"x": WAVE},
    "min_max_scale": {"x": WAVE},
    "power_norm": {"x": WAVE},
    "sparsemax": {"x": WAVE},
    "entmax15": {"x": WAVE},
    "causal_softmax": {"x": WAVE, "last": 30},
    "top_k_mask": {"x": WAVE, "k": 8},
    "nucleus": {"p": PROBABILITY, "mass": 0.5},
    "moving_average": {"x": WAVE},
    "discounted_return": {"reward": WAVE, "gamma": 0.8},
    "selective_scan": {"x": WAVE, "step": RAMP, "rate": 1.0},
    "wkv": {"key": RAMP, "value": WAVE, "decay": 0.1},
    "alibi_weights": {"scores": WAVE, "query": 40, "slope": 0.05},
    "window_weights": {"scores": WAVE, "query": 30, "radius": 8},
    "rotary": {"x": WAVE, "position": 3.0},
    "ternarize": {"x": WAVE},
    "pre_emphasis": {"x": WAVE},
    "hann": {"x": WAVE},
    "teager_energy": {"x": WAVE},
    "biquad": {"x": WAVE, "b": [0.07, 0.14, 0.07], "a": [-1.1, 0.4]},
    "rsi": {"price": PRICE, "period": 5.0},
    "max_drawdown": {"price": PRICE},
    "kalman": {"z": PRICE, "process": 0.05, "noise": 1.0},
}
