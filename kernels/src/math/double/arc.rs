//! Inverse trigonometric functions.

use std::f64::consts::FRAC_PI_2;

use crate::math::binary::{Binary64, Word};
use crate::math::bits::{clamp, constant_power, power_of_bits};
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
fn angle<F: Binary64>(y: F, x: F) -> Pair<F> {
    let (low, high) = (y.less(x * EIGHTH), (x * THREE_EIGHTHS).less(y));
    let (difference, total) = (sum(y, -x), sum(y, x));
    let sine = pair(
        F::select(low, y, F::select(high, -x, difference.high)),
        F::select(low | high, F::of(0.0), difference.low),
    );
    let cosine = pair(F::select(low, x, F::select(high, y, total.high)), F::select(low | high, F::of(0.0), total.low));
    let eighths = F::select(low, F::of(0.0), F::select(high, F::of(1.0), F::of(0.5)));
    let t = sine.over(cosine);
    let square = t.high * t.high;
    let turned = sum(eighths * FRAC_PI_2, t.high);
    let rest = t.low + t.high * (square * polynomial(square, &ATAN));
    pair(turned.high, turned.low + (eighths * FRAC_PI_2_REST + rest))
}

#[inline(always)]
pub fn atan<F: Binary64>(x: F) -> F {
    let a = x.abs();
    // All larger doubles have the same angle; without the limit a remainder could overflow.
    let result = angle(clamp(a, 0.0, 1e17), F::of(1.0)).value();
    F::select(a.less(F::of(1e-9)), x, result.copysign(x))
}

/// The angle of (x, y), as in C99.
#[inline(always)]
pub fn atan2<F: Binary64>(y: F, x: F) -> F {
    const SCALE: f64 = constant_power(600);
    let (a, b) = (x.abs(), y.abs());
    // An infinite argument dominates a finite one.
    let infinite = a.equal(F::of(f64::INFINITY)) | b.equal(F::of(f64::INFINITY));
    let a = F::select(infinite, F::select(a.equal(F::of(f64::INFINITY)), F::of(1.0), F::of(0.0)), a);
    let b = F::select(infinite, F::select(b.equal(F::of(f64::INFINITY)), F::of(1.0), F::of(0.0)), b);
    // The larger argument is scaled to about 2⁴⁰⁰, so that a tiny quotient and its remainder lose no digits.
    let largest = F::select(a.less(b), b, a);
    let small = F::select(largest.less(F::of(1e-150)), F::of(SCALE), F::of(1.0));
    let exponent = (largest * small).to_bits() >> 52;
    let scale = power_of_bits::<F>(F::Bits::of(2046 + 400) - exponent);
    let right = angle(b * small * scale, F::select(largest.equal(F::of(0.0)), F::of(1.0), a * small * scale));
    let left = sum(F::of(2.0 * FRAC_PI_2), -right.high);
    let left = left.high + (left.low + (F::of(2.0 * FRAC_PI_2_REST) - right.low));
    let result = F::select(x.to_bits().is_negative(), left, right.value()).copysign(y);
    F::select(!x.equal(x) | !y.equal(y), F::of(f64::NAN), result)
}

/// asin |x| = p or, above ½, π/2 − 2p with p = asin √((1 − |x|) / 2). Returns whether it is the latter, and p.
#[inline(always)]
fn half_arc<F: Binary64>(x: F) -> (F::Mask, Pair<F>) {
    let a = x.abs();
    let upper = F::of(0.5).less(a);
    let square = F::select(upper, (F::of(1.0) - a) * 0.5, a * a);
    let root = pair(square, F::of(0.0)).root();
    let root = pair(F::select(upper, root.high, a), F::select(upper, root.low, F::of(0.0)));
    (upper, pair(root.high, root.low + root.high * (square * polynomial(square, &ASIN))))
}

/// `quarters π/2 − p`
#[inline(always)]
fn before<F: Binary64>(quarters: F, p: Pair<F>) -> F {
    let total = sum(quarters * FRAC_PI_2, -p.high);
    total.high + (total.low + (quarters * FRAC_PI_2_REST - p.low))
}

#[inline(always)]
pub fn asin<F: Binary64>(x: F) -> F {
    let (upper, p) = half_arc(x);
    F::select(upper, before(F::of(1.0), p.scaled(F::of(2.0))), p.value()).copysign(x)
}

#[inline(always)]
pub fn acos<F: Binary64>(x: F) -> F {
    let (upper, p) = half_arc(x);
    // acos is 2p near 1 and π − 2p near −1.
    let quarters = F::select(upper, F::select(x.less(F::of(0.0)), F::of(2.0), F::of(0.0)), F::of(1.0));
    let factor = F::select(upper, F::of(-2.0), F::of(1.0)) * F::select(x.less(F::of(0.0)), F::of(-1.0), F::of(1.0));
    before(quarters, p.scaled(factor)).abs()
}
