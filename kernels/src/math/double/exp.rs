//! Exponential functions: eˣ = 2ⁿ eʳ for an integer n and |r| ≤ ½ ln 2, with r in two doubles.

use std::f64::consts::LOG2_E;

use crate::math::binary::{Binary64, Word};
use crate::math::bits::{Whole, biased, clamp, nearest, power_of_bits, power_of_two};
use crate::math::pair::{Pair, half_square, ordered_sum, pair};
use crate::math::polynomial::{fused_polynomial, polynomial};

/// ln 2: the first 42 bits, whose product with an exponent is exact, and the rest.
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
fn parts<F: Binary64>(x: F) -> (Whole<F>, Pair<F>) {
    let n = nearest(x * LOG2_E);
    let r = ordered_sum(x - n.value * LN_2[0], -(n.value * LN_2[1]));
    (n, below_one(r))
}

/// eʳ − 1 for |r| ≤ ½ ln 2
#[inline(always)]
fn below_one<F: Binary64>(r: Pair<F>) -> Pair<F> {
    let half = half_square(r.high);
    let large = ordered_sum(r.high, half.high);
    let small = r.high * (r.high * r.high) * polynomial(r.high, &EXP);
    pair(large.high, large.low + (half.low + (r.low + small)))
}

/// eˣ 2⁻ⁿ between ½ and 2, and n; for |x| below about 2¹⁰.
#[inline(always)]
pub(super) fn mantissa<F: Binary64>(x: F) -> (Pair<F>, Whole<F>) {
    let (n, m) = parts(x);
    let one = ordered_sum(F::of(1.0), m.high);
    (ordered_sum(one.high, one.low + m.low), n)
}

/// `x · 2ⁿ` for |n| ≤ 2000, rounded once even if the result is denormal.
#[inline(always)]
pub(super) fn scaled<F: Binary64>(x: F, n: Whole<F>) -> F {
    let half = nearest(n.value * 0.5);
    let rest = nearest(n.value - half.value);
    x * power_of_two(half) * power_of_two(rest)
}

/// eʳ, as a large part and a small one, and n. Uses fused products.
#[inline(always)]
pub(super) fn fused_mantissa<F: Binary64, const BIAS: u64>(x: F) -> (F, F, Whole<F>) {
    let n = biased::<_, BIAS>(x, LOG2_E);
    let r = n.value.mul_add(F::of(-LN_2[1]), n.value.mul_add(F::of(-LN_2[0]), x));
    let high = r + 1.0;
    (high, (r * r).mul_add(r.mul_add(fused_polynomial(r, &EXP), F::of(0.5)), r - (high - 1.0)), n)
}

/// e⁻ˣ = 2ⁿ (1 + r + c), as r, c and n. Uses fused products.
#[inline(always)]
pub(super) fn reduced<F: Binary64, const BIAS: u64>(x: F) -> (F, F, Whole<F>) {
    let n = biased::<_, BIAS>(x, -LOG2_E);
    let r = n.value.mul_add(F::of(-LN_2[1]), n.value.mul_add(F::of(-LN_2[0]), -x));
    (r, r * r * r.mul_add(fused_polynomial(r, &EXP), F::of(0.5)), n)
}

/// r, its rounding error, and n. Uses fused products.
#[inline(always)]
fn remainder<F: Binary64, const BIAS: u64>(x: F) -> (F, F, Whole<F>) {
    let n = biased::<_, BIAS>(x, LOG2_E);
    let exact = n.value.mul_add(F::of(-LN_2[0]), x);
    let r = n.value.mul_add(F::of(-LN_2[1]), exact);
    (r, n.value.mul_add(F::of(-LN_2[1]), exact - r), n)
}

/// eʳ − 1, as a large part, which is r, and a small one, which includes the rounding error of r; and n.
#[inline(always)]
fn mantissa_less_one<F: Binary64, const BIAS: u64>(x: F) -> (F, F, Whole<F>) {
    let (r, lost, n) = remainder::<_, BIAS>(x);
    let rest = (r * r * r).mul_add(fused_polynomial(r, &EXP), (r * 0.5).mul_add(r, lost.mul_add(r, lost)));
    (r, rest, n)
}

/// The same in fewer steps, which cost up to a third of the last digit.
#[inline(always)]
pub(super) fn reduced_less_one<F: Binary64, const BIAS: u64>(x: F) -> (F, F, Whole<F>) {
    let (r, lost, n) = remainder::<_, BIAS>(x);
    (r, (r * r).mul_add(r.mul_add(fused_polynomial(r, &EXP), F::of(0.5)), lost), n)
}

/// r and eʳ − 1 − r, and n, of e^−(`square` + `rest`). The square loses no digits.
#[inline(always)]
pub(super) fn exp_of_square<F: Binary64, const BIAS: u64>(square: F, rest: F) -> (F, F, Whole<F>) {
    let n = biased::<_, BIAS>(square, -LOG2_E);
    let r = n.value.mul_add(F::of(-LN_2[0]), -square);
    let lost = n.value.mul_add(F::of(LN_2[1]), rest);
    let whole = r - lost;
    (r, (whole * whole).mul_add(whole.mul_add(fused_polynomial(whole, &EXP), F::of(0.5)), -lost), n)
}

/// eʳ, as a large part and a small one, and n, of x + `rest`.
#[inline(always)]
pub(super) fn exp_of_pair<F: Binary64, const BIAS: u64>(x: F, rest: F) -> (F, F, Whole<F>) {
    let n = biased::<_, BIAS>(x, LOG2_E);
    let r = n.value.mul_add(F::of(-LN_2[0]), x);
    let rest = n.value.mul_add(F::of(-LN_2[1]), rest);
    let whole = r + rest;
    let high = r + 1.0;
    let curve = whole.mul_add(fused_polynomial(whole, &EXP), F::of(0.5));
    (high, (whole * whole).mul_add(curve, rest + (r - (high - 1.0))), n)
}

/// eʳ, as a large part and a small one, and n, of x + a · b.
#[inline(always)]
pub(super) fn exp_of_sum<F: Binary64, const BIAS: u64>(x: F, a: F, b: F) -> (F, F, Whole<F>) {
    let n = biased::<_, BIAS>(a.mul_add(b, x), LOG2_E);
    let r = n.value.mul_add(F::of(-LN_2[1]), a.mul_add(b, n.value.mul_add(F::of(-LN_2[0]), x)));
    let high = r + 1.0;
    (high, (r * r).mul_add(r.mul_add(fused_polynomial(r, &EXP), F::of(0.5)), r - (high - 1.0)), n)
}

/// Twice the bias of an exponent, so that each of two steps includes one.
pub(super) const TWO_BIASES: u64 = 2046;

#[inline(always)]
pub fn exp<F: Binary64>(x: F) -> F {
    let (high, low, n) = fused_mantissa::<_, TWO_BIASES>(clamp(x, -750.0, 710.0));
    let half = n.bits >> 1;
    (high + low) * power_of_bits::<F>(half) * power_of_bits::<F>(n.bits - half)
}

#[inline(always)]
pub fn exp2<F: Binary64>(x: F) -> F {
    let x = clamp(x, -1080.0, 1025.0);
    let n = nearest(x);
    let f = x - n.value;
    // f ln 2 in two doubles.
    let r = pair(f, F::of(0.0)).times(F::of(std::f64::consts::LN_2));
    let m = below_one(pair(r.high, r.low + f * LN_2_REST));
    let one = ordered_sum(F::of(1.0), m.high);
    scaled(one.high + (one.low + m.low), n)
}

/// The rounding error of `std::f64::consts::LN_2`.
const LN_2_REST: f64 = 2.319_046_813_846_299_6e-17;

#[inline(always)]
pub fn expm1<F: Binary64>(x: F) -> F {
    let (r, rest, n) = mantissa_less_one::<_, TWO_BIASES>(clamp(x, -40.0, 710.0));
    // Scaled by ½, because 2¹⁰²⁴ overflows.
    let scale = power_of_bits::<F>(n.bits - Word::of(1024));
    let whole = scale - 0.5;
    let high = scale.mul_add(r, whole);
    let low = scale.mul_add(r, whole - high) + scale.mul_add(rest, (scale - whole) - 0.5);
    // A tiny argument is the result; halving it would lose its last digit.
    F::select(x.abs().less(F::of(1e-17)), x, (high + low) * 2.0)
}
