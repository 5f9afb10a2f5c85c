//! Inverse hyperbolic functions, as logarithms of 1 plus a number that is small when the argument is.

use super::log::log1p_scaled;
use crate::math::bits::select;
use crate::math::pair::{Pair, pair, product, sum};

/// Above this number, a square would overflow and 1 is negligible.
const LARGE: f64 = 1e150;

/// ln(1 + x), or ln 2a for large a.
#[inline(always)]
fn log(a: f64, x: Pair) -> f64 {
    let large = a > LARGE;
    let x = pair(select(large, a, x.high), select(large, 0.0, x.low));
    let log = log1p_scaled(x, select(large, 1.0, 0.0)).high;
    select(a < f64::INFINITY, log, a)
}

#[inline(always)]
pub fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let root = product(a, a).plus(1.0).root();
    let result = log(a, root.plus(-1.0).plus(a));
    select(a < 1e-9, x, result.copysign(x))
}

#[inline(always)]
pub fn acosh(x: f64) -> f64 {
    let t = x - 1.0;
    let root = product(t, t).plus(2.0 * t).root();
    select(x < 1.0, f64::NAN, log(x, root.plus(t)))
}

#[inline(always)]
pub fn atanh(x: f64) -> f64 {
    let a = x.abs();
    let ratio = pair(a + a, 0.0).over(sum(1.0, -a));
    let log = 0.5 * log1p_scaled(ratio, 0.0).high;
    let log = select(a == 1.0, f64::INFINITY, select(a > 1.0, f64::NAN, log));
    select(a < 1e-9, x, log.copysign(x))
}
