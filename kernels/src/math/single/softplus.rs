//! The smooth maximum of x and 0.

use std::f32::consts::SQRT_2;

use super::bits::{TWO_BIASES, scaled};
use super::exp::{LN_2, mantissa_less_one};
use super::log::{beyond_linear, with_exponent};
use crate::math::binary::{Binary32, Word};
use crate::math::bits::clamp;

/// ln(1 + eˣ) = x⁺ + ln(1 + e) for e = e^−|x|. The exponent of 1 + e is chosen so that f is small.
#[inline(always)]
pub fn softplus<F: Binary32>(x: F) -> F {
    let (r, rest, n) = mantissa_less_one::<_, TWO_BIASES>(-clamp(x.abs(), 0.0, 104.0));
    let e = (r + rest) + 1.0;
    let below = ((F::of(1.0) - e) + r) + rest;
    // 0 if e is so small that it is the result.
    let exponent = (n.bits & Word::of(0xFF)).wrapping_sub(Word::of(127));
    let scale = F::from_bits(Word::select(exponent.is_negative(), Word::of(0), exponent) << 23);
    let (large, small) = (e * scale, below * scale);
    let far = F::of(SQRT_2 - 1.0).less(large);
    let k = F::select(far, F::of(1.0), F::of(0.0));
    let factor = F::select(far, F::of(0.5), F::of(1.0));
    let one = F::select(far, F::of(0.5), F::of(0.0));
    let f = large.mul_add(factor, -one);
    let rest = small.mul_add(factor, large.mul_add(factor, -one - f));
    let (high, low) = with_exponent(k, LN_2, f);
    let low = beyond_linear(f, rest.mul_add(-f, rest) + low);
    let larger = high.less(x);
    let more = F::select(larger, x, high);
    let less = F::select(larger, high, F::select(F::of(0.0).less(x), x, F::of(0.0)));
    let sum = more + less;
    let log = sum + (((more - sum) + less) + low);
    // Beyond 18, one of the two terms is negligible.
    F::select(x.less(F::of(-18.0)), scaled(e, n), F::select(F::of(18.0).less(x), x, log))
}

/// ln σ(x)
#[inline(always)]
pub fn log_sigmoid<F: Binary32>(x: F) -> F {
    -softplus(-x)
}
