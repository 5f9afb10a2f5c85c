//! Exponential functions: 2ⁿ⁺ᶠ = 2ⁿ + 2ⁿ (2ᶠ − 1) for an integer n and |f| ≤ ½.

use std::f64::consts::LOG2_E;

use crate::math::binary::Binary64;
use crate::math::bits::{clamp, nearest, power_of_two};
use crate::math::polynomial::polynomial;

/// (2ᶠ − 1) / f over [−½, ½].
const EXP2: [f64; 7] = [
    0.6931471805818314,
    0.240226509201031,
    0.055504107266008205,
    0.0096180570322906,
    0.0013333670369979377,
    0.00015461331313581877,
    1.5252496270546683e-05,
];

/// 2ˣ = a + b, where a is a power of two and b is small if x is.
#[inline(always)]
fn parts<F: Binary64>(x: F) -> (F, F) {
    // Far outside of the range of a single, and far inside of the range of a double.
    let x = clamp(x, -300.0, 300.0);
    let n = nearest(x);
    let f = x - n.value;
    let scale = power_of_two(n);
    (scale, scale * (f * polynomial(f, &EXP2)))
}

#[inline(always)]
pub fn exp2<F: Binary64>(x: F) -> F {
    let (a, b) = parts(x);
    a + b
}

#[inline(always)]
pub fn exp<F: Binary64>(x: F) -> F {
    exp2(x * LOG2_E)
}

#[inline(always)]
pub fn expm1<F: Binary64>(x: F) -> F {
    let (a, b) = parts(x * LOG2_E);
    ((a - 1.0) + b).copysign(x)
}
