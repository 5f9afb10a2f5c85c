//! Inverse trigonometric functions.

use std::f64::consts::FRAC_PI_2;

use crate::math::bits::{clamp, power_of_bits, select};
use crate::math::pair::{Pair, pair, sum};
use crate::math::polynomial::polynomial;

/// (atan t − t) / t³ by t² over |t| ≤ tan π/8.
const ATAN: [f64; 12] = [
    -0.33333333333333326,
    0.19999999999997695,
    -0.1428571428539118,
    0.1111111108837469,
    -0.09090908151605513,
    0.07692282918071502,
    -0.06666229102896438,
    0.05877044690497058,
    -0.052185513201998684,
    0.0450414536150001,
    -0.03348830098598605,
    0.015209188547836932,
];

/// (asin r − r) / r³ by r² over |r| ≤ ½.
const ASIN: [f64; 13] = [
    0.16666666666666763,
    0.07499999999970294,
    0.044642857175092254,
    0.030381942684907185,
    0.022372215626022717,
    0.017351600670048484,
    0.01398095498087568,
    0.011397825121144655,
    0.010786274852303773,
    0.003683923897056127,
    0.021761537394655455,
    -0.021074765568512455,
    0.032675458269457,
];

/// The rounding error of `FRAC_PI_2`.
pub(super) const FRAC_PI_2_REST: f64 = 6.123_233_995_736_766e-17;

/// tan π/8
const EIGHTH: f64 = 0.414_213_562_373_095_03;
/// tan 3π/8
const THREE_EIGHTHS: f64 = 2.414_213_562_373_095;

/// The angle of (x, y) in the first quadrant. It is rotated by 0, π/4 or π/2 first, so that it is at most π/8.
#[inline(always)]
fn angle(y: f64, x: f64) -> Pair {
    let (low, high) = (y < x * EIGHTH, y > x * THREE_EIGHTHS);
    let (difference, total) = (sum(y, -x), sum(y, x));
    let sine = pair(select(low, y, select(high, -x, difference.high)), select(low | high, 0.0, difference.low));
    let cosine = pair(select(low, x, select(high, y, total.high)), select(low | high, 0.0, total.low));
    let eighths = select(low, 0.0, select(high, 1.0, 0.5));
    let t = sine.over(cosine);
    let square = t.high * t.high;
    let turned = sum(FRAC_PI_2 * eighths, t.high);
    let rest = t.low + t.high * (square * polynomial(square, &ATAN));
    pair(turned.high, turned.low + (FRAC_PI_2_REST * eighths + rest))
}

#[inline(always)]
pub fn atan(x: f64) -> f64 {
    let a = x.abs();
    // All larger doubles have the same angle; without the limit a remainder could overflow.
    let result = angle(clamp(a, 0.0, 1e17), 1.0).value();
    select(a < 1e-9, x, result.copysign(x))
}

/// The angle of (x, y), as in C99.
#[inline(always)]
pub fn atan2(y: f64, x: f64) -> f64 {
    const SCALE: f64 = power_of_bits(1023 + 600);
    let (a, b) = (x.abs(), y.abs());
    // An infinite argument dominates a finite one.
    let infinite = (a == f64::INFINITY) | (b == f64::INFINITY);
    let a = select(infinite, select(a == f64::INFINITY, 1.0, 0.0), a);
    let b = select(infinite, select(b == f64::INFINITY, 1.0, 0.0), b);
    // The larger argument is scaled to about 2⁴⁰⁰, so that a tiny quotient and its remainder lose no digits.
    let largest = select(a < b, b, a);
    let small = select(largest < 1e-150, SCALE, 1.0);
    let exponent = (largest * small).to_bits() >> 52;
    let scale = power_of_bits(2046 + 400 - exponent);
    let right = angle(b * small * scale, select(largest == 0.0, 1.0, a * small * scale));
    let left = sum(2.0 * FRAC_PI_2, -right.high);
    let left = left.high + (left.low + (2.0 * FRAC_PI_2_REST - right.low));
    let result = select(x.is_sign_negative(), left, right.value()).copysign(y);
    select(x.is_nan() | y.is_nan(), f64::NAN, result)
}

/// asin |x| = p or, above ½, π/2 − 2p with p = asin √((1 − |x|) / 2). Returns whether it is the latter, and p.
#[inline(always)]
fn half_arc(x: f64) -> (bool, Pair) {
    let a = x.abs();
    let upper = a > 0.5;
    let square = select(upper, 0.5 * (1.0 - a), a * a);
    let root = pair(square, 0.0).root();
    let root = pair(select(upper, root.high, a), select(upper, root.low, 0.0));
    (upper, pair(root.high, root.low + root.high * (square * polynomial(square, &ASIN))))
}

/// `quarters π/2 − p`
#[inline(always)]
fn before(quarters: f64, p: Pair) -> f64 {
    let total = sum(quarters * FRAC_PI_2, -p.high);
    total.high + (total.low + (quarters * FRAC_PI_2_REST - p.low))
}

#[inline(always)]
pub fn asin(x: f64) -> f64 {
    let (upper, p) = half_arc(x);
    select(upper, before(1.0, p.scaled(2.0)), p.value()).copysign(x)
}

#[inline(always)]
pub fn acos(x: f64) -> f64 {
    let (upper, p) = half_arc(x);
    // acos is 2p near 1 and π − 2p near −1.
    let quarters = select(upper, select(x < 0.0, 2.0, 0.0), 1.0);
    let factor = select(upper, -2.0, 1.0) * select(x < 0.0, -1.0, 1.0);
    before(quarters, p.scaled(factor)).abs()
}
