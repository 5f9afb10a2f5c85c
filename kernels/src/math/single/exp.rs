//! Exponential functions: eˣ = 2ⁿ eʳ for an integer n and |r| ≤ ½ ln 2, and eʳ = 1 + r + r² q.

use std::f32::consts::LOG2_E;

use super::bits::{TWO_BIASES, Whole, nearest, power_of_two, scaled};
use super::polynomial::polynomial;
use crate::math::bits::{clamp, select};

/// (eʳ − 1 − r) / r² over |r| ≤ ½ ln 2.
const EXP: [f32; 5] = [0.49999994, 0.16666521, 0.04166839, 0.008368705, 0.0013814425];

/// (eʳ − 1 − r − r²/2) / r³ over |r| ≤ ½ ln 2.
const EXPM1: [f32; 5] = [0.16666667, 0.04166648, 0.008333283, 0.001393331, 0.00019909465];

/// (2ᶠ − 1) / f over [−½, ½]. The first coefficient approximates ln 2 as part of the fit.
#[allow(clippy::approx_constant)]
const EXP2: [f32; 6] = [0.6931472, 0.24022649, 0.055503573, 0.009618237, 0.0013390739, 0.00015403744];

/// ln 2: the first 16 bits, whose product with an exponent is exact, and the rest.
pub(super) const LN_2: [f32; 2] = [0.69314575, 1.4286068e-06];

/// eʳ, as a large part and a small one, and n.
#[inline(always)]
pub(super) fn mantissa<const BIAS: u32>(x: f32) -> (f32, f32, Whole) {
    let n = nearest::<BIAS>(x, LOG2_E);
    let r = n.value.mul_add(-LN_2[1], n.value.mul_add(-LN_2[0], x));
    let high = 1.0 + r;
    (high, (r * r).mul_add(polynomial(r, &EXP), r - (high - 1.0)), n)
}

/// e⁻ˣ = 2ⁿ (1 + r + c), as r, c and n.
#[inline(always)]
pub(super) fn reduced<const BIAS: u32>(x: f32) -> (f32, f32, Whole) {
    let n = nearest::<BIAS>(x, -LOG2_E);
    let r = n.value.mul_add(-LN_2[1], n.value.mul_add(-LN_2[0], -x));
    (r, r * r * polynomial(r, &EXP), n)
}

/// e^−s = 2ⁿ (1 + r + l) for s = `square` + `rest`, as r, which is exact, and l, and n.
#[inline(always)]
pub(super) fn mantissa_of_square<const BIAS: u32>(square: f32, rest: f32) -> (f32, f32, Whole) {
    let n = nearest::<BIAS>(square, -LOG2_E);
    let r = n.value.mul_add(-LN_2[0], -square);
    let lost = n.value.mul_add(LN_2[1], rest);
    let whole = r - lost;
    (r, (whole * whole).mul_add(polynomial(whole, &EXP), -lost), n)
}

/// The same for `x + a · b`, where x is the large part.
#[inline(always)]
pub(super) fn mantissa_of_sum<const BIAS: u32>(x: f32, a: f32, b: f32) -> (f32, f32, Whole) {
    let n = nearest::<BIAS>(a.mul_add(b, x), LOG2_E);
    let r = n.value.mul_add(-LN_2[1], a.mul_add(b, n.value.mul_add(-LN_2[0], x)));
    let high = 1.0 + r;
    (high, (r * r).mul_add(polynomial(r, &EXP), r - (high - 1.0)), n)
}

/// eʳ − 1, as a large part, which is r, and a small one, which includes the rounding error of r; and n.
#[inline(always)]
pub(super) fn mantissa_less_one<const BIAS: u32>(x: f32) -> (f32, f32, Whole) {
    let n = nearest::<BIAS>(x, LOG2_E);
    let exact = n.value.mul_add(-LN_2[0], x);
    let r = n.value.mul_add(-LN_2[1], exact);
    let lost = n.value.mul_add(-LN_2[1], exact - r);
    let rest = (r * r * r).mul_add(polynomial(r, &EXPM1), (0.5 * r).mul_add(r, lost.mul_add(r, lost)));
    (r, rest, n)
}

#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let (high, low, n) = mantissa::<TWO_BIASES>(clamp(x, -104.0, 89.0));
    scaled(high + low, n)
}

#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    let x = clamp(x, -151.0, 129.0);
    let n = nearest::<TWO_BIASES>(x, 1.0);
    let f = x - n.value;
    let [first, higher @ ..] = EXP2;
    let high = f.mul_add(first, 1.0);
    let low = (f * f).mul_add(polynomial(f, &higher), f.mul_add(first, 1.0 - high));
    scaled(high + low, n)
}

#[inline(always)]
pub fn expm1(x: f32) -> f32 {
    let (r, rest, n) = mantissa_less_one::<TWO_BIASES>(clamp(x, -18.0, 89.0));
    // Scaled by ½, because 2¹²⁸ overflows.
    let scale = power_of_two(n.bits - 128);
    let whole = scale - 0.5;
    let high = scale.mul_add(r, whole);
    let low = scale.mul_add(r, whole - high) + scale.mul_add(rest, (scale - whole) - 0.5);
    // A tiny argument is the result; halving it would lose its last digit.
    select(x.abs() < 1e-8, x, 2.0 * (high + low))
}
