//! Inverse trigonometric functions.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use crate::math::binary::{Binary64, Word};
use crate::math::bits::clamp;
use crate::math::polynomial::polynomial;

/// atan(t) / t by t² over |t| ≤ tan π/8.
const ATAN: [f64; 6] = [
    0.9999999993973454,
    -0.333333076178639,
    0.1999821655039783,
    -0.14240076488312362,
    0.10573433430014752,
    -0.06034671281981023,
];

/// asin(r) / r by r² over |r| ≤ ½.
const ASIN: [f64; 7] = [
    1.0000000002543563,
    0.16666656939154179,
    0.07500604378239534,
    0.04450303723787269,
    0.031901200448350535,
    0.01413803083779813,
    0.0378875894243686,
];

/// tan π/8
const EIGHTH: f64 = 0.414_213_562_373_095_03;
/// tan 3π/8
const THREE_EIGHTHS: f64 = 2.414_213_562_373_095;

/// The angle of (x, y) in the first quadrant. It is rotated by 0, π/4 or π/2 first, so that it is at most π/8.
#[inline(always)]
fn angle<F: Binary64>(y: F, x: F) -> F {
    let (low, high) = (y.less(x * EIGHTH), (x * THREE_EIGHTHS).less(y));
    let sine = F::select(low, y, F::select(high, -x, y - x));
    let cosine = F::select(low, x, F::select(high, y, y + x));
    let turned = F::select(low, F::of(0.0), F::select(high, F::of(FRAC_PI_2), F::of(FRAC_PI_4)));
    let t = sine / cosine;
    turned + t * polynomial(t * t, &ATAN)
}

#[inline(always)]
pub fn atan<F: Binary64>(x: F) -> F {
    angle(x.abs(), F::of(1.0)).copysign(x)
}

#[inline(always)]
pub fn atan2<F: Binary64>(y: F, x: F) -> F {
    // Two infinities are at 45°, and two zeros at 0°.
    let right = angle(clamp(y.abs(), 0.0, 1e300), clamp(x.abs(), 1e-300, 1e300));
    F::select(x.to_bits().is_negative(), F::of(PI) - right, right).copysign(y)
}

/// asin |x| = p or, above ½, π/2 − 2p with p = asin √((1 − |x|) / 2). Returns whether it is the latter, and p.
#[inline(always)]
fn half_arc<F: Binary64>(x: F) -> (F::Mask, F) {
    let a = x.abs();
    let upper = F::of(0.5).less(a);
    let square = F::select(upper, (F::of(1.0) - a) * 0.5, a * a);
    let root = F::select(upper, square.sqrt(), a);
    (upper, root * polynomial(square, &ASIN))
}

#[inline(always)]
pub fn asin<F: Binary64>(x: F) -> F {
    let (upper, p) = half_arc(x);
    F::select(upper, F::of(FRAC_PI_2) - p * 2.0, p).copysign(x)
}

#[inline(always)]
pub fn acos<F: Binary64>(x: F) -> F {
    let (upper, p) = half_arc(x);
    let from_end = F::select(x.less(F::of(0.0)), F::of(PI) - p * 2.0, p * 2.0);
    F::select(upper, from_end, F::of(FRAC_PI_2) - p.copysign(x))
}
