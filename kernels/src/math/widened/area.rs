//! Inverse hyperbolic functions, as logarithms of 1 plus a number that is small when the argument is.

use super::log::log1p;
use crate::math::bits::select;

#[inline(always)]
pub fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let log = log1p(a + a * a / (1.0 + (a * a + 1.0).sqrt()));
    select(a < f64::INFINITY, log, a).copysign(x)
}

#[inline(always)]
pub fn acosh(x: f64) -> f64 {
    let t = x - 1.0;
    select(t < 0.0, f64::NAN, log1p(t + (t * (t + 2.0)).sqrt()))
}

#[inline(always)]
pub fn atanh(x: f64) -> f64 {
    let a = x.abs();
    (0.5 * log1p(2.0 * a / (1.0 - a))).copysign(x)
}
