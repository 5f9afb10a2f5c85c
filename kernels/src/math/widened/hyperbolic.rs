//! Hyperbolic functions, computed from m = eˣ − 1, which is accurate near 0.

use super::exp::{exp, expm1};
use crate::math::binary::Binary64;

/// (m + m / (m + 1)) / 2
#[inline(always)]
pub fn sinh<F: Binary64>(x: F) -> F {
    let m = expm1(x.abs());
    ((m + m / (m + 1.0)) * 0.5).copysign(x)
}

#[inline(always)]
pub fn cosh<F: Binary64>(x: F) -> F {
    let e = exp(x.abs());
    (e + F::of(1.0) / e) * 0.5
}
