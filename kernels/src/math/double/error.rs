//! The normal distribution, by way of the error function.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use crate::math::pair::product;

/// What `FRAC_1_SQRT_2` lacks.
const FRAC_1_SQRT_2_REST: f64 = -4.833646656726457e-17;

/// Φ(x) = ½ erfc(−x / √2), and what changes with the digits that the rounded argument lacks.
#[inline(always)]
pub fn normal_cdf(x: f64) -> f64 {
    let argument = product(-x, FRAC_1_SQRT_2);
    let z = argument.high;
    let half = 0.5 * libm::erfc(z);
    if z.abs() > 30.0 || z.is_nan() {
        return half;
    }
    let rest = argument.low - x * FRAC_1_SQRT_2_REST;
    half - 0.5 * FRAC_2_SQRT_PI * super::exp(-z * z) * rest
}
