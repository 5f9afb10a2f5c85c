//! Exponential functions: eˣ = 2ⁿ eʳ for whole n and |r| ≤ ½ ln 2, with r in two doubles.

use std::f64::consts::LOG2_E;

use crate::math::bits::{Whole, clamp, nearest, power_of_two, select};
use crate::math::pair::{Pair, half_square, ordered_sum, pair, sum};
use crate::math::polynomial::polynomial;

/// ln 2: 42 bits, so that their product with an exponent is exact, and the rest.
pub(super) const LN_2: [f64; 2] = [0.6931471805598903, 5.497923018708371e-14];

/// (eʳ − 1 − r − r²/2) / r³ over |r| ≤ ½ ln 2.
const EXP: [f64; 10] = [
    0.16666666666666669,
    0.04166666666666667,
    0.008333333333330062,
    0.0013888888888880912,
    0.0001984126986305509,
    2.4801587333969998e-05,
    2.7557268458375953e-06,
    2.755726433661024e-07,
    2.510038607943752e-08,
    2.0918120583827727e-09,
];

/// The n of x, and eʳ − 1 in two doubles.
#[inline(always)]
fn parts(x: f64) -> (Whole, Pair) {
    let n = nearest(x * LOG2_E);
    let r = ordered_sum(x - n.value * LN_2[0], -(n.value * LN_2[1]));
    (n, below_one(r))
}

/// eʳ − 1 for |r| ≤ ½ ln 2
#[inline(always)]
fn below_one(r: Pair) -> Pair {
    let half = half_square(r.high);
    let large = ordered_sum(r.high, half.high);
    let small = r.high * (r.high * r.high) * polynomial(r.high, &EXP);
    pair(large.high, large.low + (half.low + (r.low + small)))
}

/// eˣ 2⁻ⁿ between ½ and 2, and n; for |x| below 2¹⁰ or so.
#[inline(always)]
pub(super) fn mantissa(x: f64) -> (Pair, Whole) {
    let (n, m) = parts(x);
    let one = ordered_sum(1.0, m.high);
    (ordered_sum(one.high, one.low + m.low), n)
}

/// `x · 2ⁿ` for |n| ≤ 2000, rounded once even where it is denormal.
#[inline(always)]
pub(super) fn scaled(x: f64, n: Whole) -> f64 {
    let half = nearest(0.5 * n.value);
    let rest = nearest(n.value - half.value);
    x * power_of_two(half) * power_of_two(rest)
}

#[inline(always)]
pub fn exp(x: f64) -> f64 {
    let (m, n) = mantissa(clamp(x, -750.0, 710.0));
    scaled(m.high, n)
}

#[inline(always)]
pub fn exp2(x: f64) -> f64 {
    let x = clamp(x, -1080.0, 1025.0);
    let n = nearest(x);
    let f = x - n.value;
    // f ln 2 in two doubles.
    let r = pair(f, 0.0).times(std::f64::consts::LN_2);
    let m = below_one(pair(r.high, r.low + f * LN_2_REST));
    let one = ordered_sum(1.0, m.high);
    scaled(one.high + (one.low + m.low), n)
}

/// What `std::f64::consts::LN_2` lacks.
const LN_2_REST: f64 = 2.319_046_813_846_299_6e-17;

/// (eˣ − 1) / 2 in two doubles, for −40 ≤ x ≤ 710.
#[inline(always)]
pub(super) fn half_expm1(x: f64) -> Pair {
    let (n, m) = parts(x);
    // Half, because 2¹⁰²⁴ is not a double.
    let scale = power_of_two(nearest(n.value - 1.0));
    let m = m.scaled(scale);
    let whole = sum(scale, -0.5);
    let total = sum(whole.high, m.high);
    ordered_sum(total.high, total.low + (whole.low + m.low))
}

#[inline(always)]
pub fn expm1(x: f64) -> f64 {
    // A tiny number is its own result, and would lose its last digit by half of it.
    select(x.abs() < 1e-17, x, 2.0 * half_expm1(clamp(x, -40.0, 710.0)).high)
}

/// `1 / (1 + e⁻ˣ)` = n / (1 + e) with e = e^−|x| and n = 1 or, for negative x, n = e.
#[inline(always)]
pub fn sigmoid(x: f64) -> f64 {
    let (m, n) = mantissa(clamp(-x.abs(), -750.0, 0.0));
    // Beyond e⁻⁶⁰⁰ there is nothing to add to 1, and no power of two above the least.
    let small = m.scaled(power_of_two(nearest(clamp(n.value, -900.0, 0.0))));
    let below = ordered_sum(1.0, small.high);
    let below = pair(below.high, below.low + small.low);
    let negative = x < 0.0;
    let above = pair(select(negative, m.high, 1.0), select(negative, m.low, 0.0));
    let n = nearest(select(negative, n.value, 0.0));
    scaled(above.over(below).value(), n)
}
