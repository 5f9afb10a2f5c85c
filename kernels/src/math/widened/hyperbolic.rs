//! Hyperbolic functions, computed from m = eˣ − 1, which is accurate near 0.

use super::exp::{exp, expm1};

/// (m + m / (m + 1)) / 2
#[inline(always)]
pub fn sinh(x: f64) -> f64 {
    let m = expm1(x.abs());
    (0.5 * (m + m / (m + 1.0))).copysign(x)
}

#[inline(always)]
pub fn cosh(x: f64) -> f64 {
    let e = exp(x.abs());
    0.5 * (e + 1.0 / e)
}
