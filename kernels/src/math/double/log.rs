//! Logarithms: ln 2ᵏm = k ln 2 + ln(1 + f), with ln(1 + f) = 2 atanh s for s = f / (2 + f). Its large part is f itself.

use super::exp::{LN_2, mantissa, scaled};
use crate::math::binary::{Binary64, Word};
use crate::math::bits::{FROM_ROOT, clamp, exponent_and_mantissa, nearest, power_of_two, split};
use crate::math::pair::{Pair, half_square, ordered_sum, pair, product, sum};
use crate::math::polynomial::{fused_polynomial, polynomial};

/// (2 atanh s − 2 s) / s³ by s² over |s| ≤ (√2 − 1) / (√2 + 1).
const LOG: [f64; 7] = [
    0.6666666666666734,
    0.399999999994137,
    0.2857142874265009,
    0.22222198542289082,
    0.18183566107763488,
    0.15314001044216752,
    0.147964800608263,
];

/// 1 / ln 2 and its rounding error.
const LOG2_E: [f64; 2] = [std::f64::consts::LOG2_E, 2.0355273740931033e-17];
/// 1 / ln 10 and its rounding error.
const LOG10_E: [f64; 2] = [std::f64::consts::LOG10_E, 1.098319650216765e-17];
/// log₁₀ 2: the first 42 bits, whose product with an exponent is exact, and the rest.
const LOG10_2: [f64; 2] = [0.30102999566383914, 1.42050232272661e-13];

/// ln(1 + f) for √½ ≤ 1 + f < √2, as a large part and a small one. 2s is f − f²/2 + s f²/2, where only the last term
/// has the error of s.
#[inline(always)]
fn near_one<F: Binary64>(f: F) -> Pair<F> {
    let s = f / (f + 2.0);
    let square = s * s;
    let half = half_square(f);
    let large = ordered_sum(f, -half.high);
    let small = s * (half.value() + square * polynomial(square, &LOG));
    pair(large.high, large.low + (small - half.low))
}

/// k and f of a positive number.
#[inline(always)]
pub(super) fn parts<F: Binary64>(x: F) -> (F, F) {
    const TWO_54: f64 = 18_014_398_509_481_984.0;
    let denormal = x.less(F::of(f64::MIN_POSITIVE));
    // The exponents of other numbers are raised as much. The product isn't selected first, which would take longer.
    let scaled = (x * TWO_54).to_bits().wrapping_add(Word::of(FROM_ROOT));
    let raised = x.to_bits().wrapping_add(Word::of(FROM_ROOT + (54 << 52)));
    let (k, m) = split::<F>(Word::select(denormal, scaled, raised), 1023.0 + 54.0);
    (k, m - 1.0)
}

/// The logarithm for arguments that are not positive or not finite, else `log`. It tests the bits once; LLVM would
/// compile comparisons to several tests.
#[inline(always)]
pub(super) fn with_ends<F: Binary64>(x: F, log: F) -> F {
    let positive_and_finite = x.to_bits().wrapping_sub(Word::of(1)).less(Word::of(f64::INFINITY.to_bits() - 1));
    let end = F::select(x.to_bits().is_negative(), F::of(f64::NAN), x);
    let end = F::select(x.equal(F::of(0.0)), F::of(f64::NEG_INFINITY), end);
    F::select(positive_and_finite, log, end)
}

/// `k unit + log`, where the product of k and the first part of the unit is exact.
#[inline(always)]
fn with_exponent<F: Binary64>(k: F, unit: [f64; 2], log: Pair<F>) -> Pair<F> {
    let sum = sum(k * unit[0], log.high);
    ordered_sum(sum.high, sum.low + (k * unit[1] + log.low))
}

#[inline(always)]
pub fn log<F: Binary64>(x: F) -> F {
    let (k, f) = parts(x);
    let s = f / (f + 2.0);
    let square = s * s;
    let half = f * 0.5 * f;
    let curve = square.mul_add(fused_polynomial(square, &LOG), half);
    let high = k.mul_add(F::of(LN_2[0]), f);
    let low = k.mul_add(F::of(LN_2[1]), f - k.mul_add(F::of(-LN_2[0]), high));
    with_ends(x, high + (s.mul_add(curve, low) - half))
}

/// A logarithm to another base, whose natural logarithm is 1 / `factor`.
#[inline(always)]
fn log_to<F: Binary64>(x: F, unit: [f64; 2], factor: [f64; 2]) -> F {
    let (k, f) = parts(x);
    let log = near_one(f);
    let product = product(log.high, F::of(factor[0]));
    let low = product.low + (log.high * factor[1] + log.low * factor[0]);
    with_ends(x, with_exponent(k, unit, pair(product.high, low)).high)
}

#[inline(always)]
pub fn log2<F: Binary64>(x: F) -> F {
    log_to(x, [1.0, 0.0], LOG2_E)
}

#[inline(always)]
pub fn log10<F: Binary64>(x: F) -> F {
    log_to(x, LOG10_2, LOG10_E)
}

/// ln 2ⁿ (1 + x) for finite x above −1, in two doubles.
#[inline(always)]
pub(super) fn log1p_scaled<F: Binary64>(x: Pair<F>, n: F) -> Pair<F> {
    let one = sum(F::of(1.0), x.high);
    let (k, m) = exponent_and_mantissa(one.high);
    // The rounding error of 1 + x belongs to f, so that f is x if k is 0. If k is large, it makes no difference.
    let lost = (one.low + x.low) * power_of_two(nearest(clamp(-k, -900.0, 900.0)));
    let f = sum(m - 1.0, lost);
    let log = near_one(f.high);
    let low = log.low + (f.low - f.low * f.high);
    with_exponent(k + n, LN_2, pair(log.high, low))
}

#[inline(always)]
pub fn log1p<F: Binary64>(x: F) -> F {
    // A tiny argument is the result.
    let log = F::select(x.abs().less(F::of(1e-17)), x, log1p_scaled(pair(x, F::of(0.0)), F::of(0.0)).high);
    with_ends(x + 1.0, log)
}

/// `start + ln(1 + e⁻ᵍᵃᵖ)`
#[inline(always)]
fn plus_log1p_exp<F: Binary64>(start: F, gap: F) -> F {
    let (m, n) = mantissa(-clamp(gap, 0.0, 750.0));
    // If 1 is negligible in it, the logarithm is the exponential itself.
    let negligible = F::of(600.0).less(gap) | start.abs().equal(F::of(f64::INFINITY));
    let tiny = start + scaled(m.high, n);
    let log = log1p_scaled(m.scaled(power_of_two(nearest(clamp(n.value, -1000.0, 0.0)))), F::of(0.0));
    let total = sum(start, log.high);
    F::select(negligible, tiny, total.high + (total.low + log.low))
}

/// ln(1 + eˣ)
#[inline(always)]
pub fn softplus<F: Binary64>(x: F) -> F {
    plus_log1p_exp(F::select(x.less(F::of(0.0)), F::of(0.0), x), x.abs())
}

/// ln σ(x)
#[inline(always)]
pub fn log_sigmoid<F: Binary64>(x: F) -> F {
    F::of(0.0) - softplus(-x)
}

#[inline(always)]
pub fn logaddexp<F: Binary64>(x: F, y: F) -> F {
    // Two equal infinities have no difference.
    let gap = F::select(x.equal(y), F::of(0.0), (x - y).abs());
    let start = F::select(y.less(x), x, y);
    F::select(!gap.equal(gap), F::of(f64::NAN), plus_log1p_exp(start, gap))
}
