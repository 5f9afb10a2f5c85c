//! Sigmoid curves: quotients of 1, or of 1 − eᵗ, by 1 + eᵗ, where the sum has two parts. Its large part divides; what
//! the quotient leaves is divided again, by multiplying with the inverse.

use super::bits::power_of_two;
use super::exp::{mantissa, mantissa_less_one};
use crate::math::bits::clamp;

/// `1 / (1 + e⁻ˣ)`; the sum is taken 2⁻³² times, so that it doesn't overflow.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    const ONE: f32 = 1.0 / 4_294_967_296.0;
    let (high, low, n) = mantissa::<{ 127 - 32 }>(-clamp(x, -104.0, 60.0));
    let scale = power_of_two(n.bits);
    let below = low.mul_add(scale, high.mul_add(scale, ONE));
    let quotient = ONE / below;
    let high = high * scale;
    let (more, less) = if high > ONE { (high, ONE) } else { (ONE, high) };
    let rest = low.mul_add(scale, (more - below) + less);
    let left = rest.mul_add(-quotient, quotient.mul_add(-below, ONE));
    (quotient / ONE).mul_add(left, quotient)
}

/// (1 − eᵗ) / (1 + eᵗ) with t = −2 |x|.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let (r, rest, n) = mantissa_less_one::<127>(clamp(-2.0 * x.abs(), -20.0, 0.0));
    let scale = power_of_two(n.bits);
    let (r, rest) = (scale * r, scale * rest);
    let (over, under) = (1.0 - scale, 1.0 + scale);
    let (above, below) = ((over - r) - rest, (under + r) + rest);
    // 1 ± a small power of two has lost some of it.
    let above_rest = (((over - above) - r) - rest) + ((1.0 - over) - scale);
    let below_rest = (((1.0 - below) + scale) + r) + rest;
    let inverse = 1.0 / below;
    let quotient = above * inverse;
    let left = quotient.mul_add(-below, above) + quotient.mul_add(-below_rest, above_rest);
    inverse.mul_add(left, quotient).copysign(x)
}
