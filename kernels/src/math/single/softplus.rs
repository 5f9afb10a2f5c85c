//! The smooth maximum of x and 0.

use std::f32::consts::SQRT_2;

use super::bits::{TWO_BIASES, scaled};
use super::exp::{LN_2, mantissa_less_one};
use super::log::{beyond_linear, with_exponent};
use crate::math::bits::{clamp, select};

/// ln(1 + eˣ) = x⁺ + ln(1 + e) for e = e^−|x|. The exponent of 1 + e is chosen so that f is small.
#[inline(always)]
pub fn softplus(x: f32) -> f32 {
    let (r, rest, n) = mantissa_less_one::<TWO_BIASES>(-clamp(x.abs(), 0.0, 104.0));
    let e = 1.0 + (r + rest);
    let below = ((1.0 - e) + r) + rest;
    // 0 if e is so small that it is the result.
    let scale = f32::from_bits((((n.bits & 0xFF) as i32 - 127).max(0) as u32) << 23);
    let (large, small) = (e * scale, below * scale);
    let far = large > SQRT_2 - 1.0;
    let (k, factor, one) = (select(far, 1.0, 0.0), select(far, 0.5, 1.0), select(far, 0.5, 0.0));
    let f = large.mul_add(factor, -one);
    let rest = small.mul_add(factor, large.mul_add(factor, -one - f));
    let (high, low) = with_exponent(k, LN_2, f);
    let low = beyond_linear(f, rest.mul_add(-f, rest) + low);
    let (more, less) = if x > high { (x, high) } else { (high, select(x > 0.0, x, 0.0)) };
    let sum = more + less;
    let log = sum + (((more - sum) + less) + low);
    // Beyond 18, one of the two terms is negligible.
    select(x < -18.0, scaled(e, n), select(x > 18.0, x, log))
}

/// ln σ(x)
#[inline(always)]
pub fn log_sigmoid(x: f32) -> f32 {
    -softplus(-x)
}
