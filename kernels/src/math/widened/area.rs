//! Inverse hyperbolic functions, as logarithms of 1 plus a number that is small when the argument is.

use super::log::log1p;
use crate::math::binary::Binary64;

#[inline(always)]
pub fn asinh<F: Binary64>(x: F) -> F {
    let a = x.abs();
    let log = log1p(a + a * a / ((a * a + 1.0).sqrt() + 1.0));
    F::select(a.less(F::of(f64::INFINITY)), log, a).copysign(x)
}

#[inline(always)]
pub fn acosh<F: Binary64>(x: F) -> F {
    let t = x - 1.0;
    F::select(t.less(F::of(0.0)), F::of(f64::NAN), log1p(t + (t * (t + 2.0)).sqrt()))
}

#[inline(always)]
pub fn atanh<F: Binary64>(x: F) -> F {
    let a = x.abs();
    (log1p(a * 2.0 / (F::of(1.0) - a)) * 0.5).copysign(x)
}
