//! Activations of neural networks.

use minitensor_plugin_sdk::prelude::*;

/// A smooth `max(x, 0)` without exponentials: `(x + √(x² + b)) / 2` (Barron, 2021).
#[custom_op(where b >= 0.0)]
pub fn squareplus<T: Float>(x: T, #[default = 4.0] b: f64) -> T {
    0.5 * (x + (x * x + b).sqrt())
}

/// A periodic activation that keeps the trend: `x + sin²(a·x) / a` (Ziyin, Hartwig and Ueda, 2020).
#[custom_op(where a > 0.0)]
pub fn snake<T: Float>(x: T, #[default = 1.0] a: f64) -> T {
    x + (a * x).sin().square() / a
}

/// `x · erf(ln(1 + eˣ))` (Nag, Bhattacharyya, Mukherjee and Kundu, 2023).
#[custom_op]
pub fn serf<T: Float>(x: T) -> T {
    x * x.softplus().erf()
}

/// `x · ln(1 + σ(x))` (Zhu et al., 2021).
#[custom_op]
pub fn logish<T: Float>(x: T) -> T {
    x * x.sigmoid().log1p()
}

/// `x · tanh(eˣ)` (Liu and Di, 2020).
#[custom_op]
pub fn tanhexp<T: Float>(x: T) -> T {
    // At 20, the tangent is 1 already, and a larger exponential would overflow.
    x * x.minimum(20.0).exp().tanh()
}

/// The growing cosine unit `x · cos(x)` (Noel et al., 2021).
#[custom_op]
pub fn growing_cosine<T: Float>(x: T) -> T {
    x * x.cos()
}

/// A ReLU whose corner is a parabola of width `2·beta` (Shamir, Lin and Coviello, 2020).
#[custom_op(where beta > 0.0)]
pub fn smelu<T: Float>(x: T, #[default = 1.0] beta: f64) -> T {
    if x <= -beta {
        0.0
    } else if x >= beta {
        x
    } else {
        (x + beta).square() / (4.0 * beta)
    }
}

/// The inverse square root linear unit: `x`, or `x / √(1 + a·x²)` below 0 (Carlile et al., 2017).
#[custom_op(where a > 0.0)]
pub fn isrlu<T: Float>(x: T, #[default = 1.0] a: f64) -> T {
    if x >= 0.0 { x } else { x * (1.0 + a * x * x).rsqrt() }
}

/// The Padé activation unit `P(x) / (1 + |Q(x)|)`, with the coefficients of P from degree 0 and of Q from degree 1
/// (Molina, Schramowski and Kersting, 2020).
#[custom_op]
pub fn rational<T: Float>(x: T, numerator: &[f64], denominator: &[f64]) -> T {
    let mut p: T = 0.0;
    for c in numerator.iter().rev() {
        p = p * x + *c;
    }
    let mut q: T = 0.0;
    for c in denominator.iter().rev() {
        q = (q + *c) * x;
    }
    p / (1.0 + q.abs())
}

/// The gated unit `swish(x) · gate` of transformers (Shazeer, 2020).
#[custom_op]
pub fn swiglu<T: Float>(x: T, gate: T) -> T {
    x * x.sigmoid() * gate
}

/// Soft shrinkage, the proximal operator of `threshold·|x|` (Donoho, 1995).
#[custom_op(where threshold >= 0.0)]
pub fn soft_shrink<T: Float>(x: T, #[default = 0.5] threshold: f64) -> T {
    x - x.clip(-threshold, threshold)
}
