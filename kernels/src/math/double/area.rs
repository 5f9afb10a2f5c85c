//! Inverse hyperbolic functions, as logarithms of 1 plus a number that is small when the argument is.

use super::log::log1p_scaled;
use crate::math::binary::Binary64;
use crate::math::pair::{Pair, pair, product, sum};

/// Above this number, a square would overflow and 1 is negligible.
const LARGE: f64 = 1e150;

/// ln(1 + x), or ln 2a for large a.
#[inline(always)]
fn log<F: Binary64>(a: F, x: Pair<F>) -> F {
    let large = F::of(LARGE).less(a);
    let x = pair(F::select(large, a, x.high), F::select(large, F::of(0.0), x.low));
    let log = log1p_scaled(x, F::select(large, F::of(1.0), F::of(0.0))).high;
    F::select(a.less(F::of(f64::INFINITY)), log, a)
}

#[inline(always)]
pub fn asinh<F: Binary64>(x: F) -> F {
    let a = x.abs();
    let root = product(a, a).plus(F::of(1.0)).root();
    let result = log(a, root.plus(F::of(-1.0)).plus(a));
    F::select(a.less(F::of(1e-9)), x, result.copysign(x))
}

#[inline(always)]
pub fn acosh<F: Binary64>(x: F) -> F {
    let t = x - 1.0;
    let root = product(t, t).plus(t * 2.0).root();
    F::select(x.less(F::of(1.0)), F::of(f64::NAN), log(x, root.plus(t)))
}

#[inline(always)]
pub fn atanh<F: Binary64>(x: F) -> F {
    let a = x.abs();
    let ratio = pair(a + a, F::of(0.0)).over(sum(F::of(1.0), -a));
    let log = log1p_scaled(ratio, F::of(0.0)).high * 0.5;
    let end = F::select(a.equal(F::of(1.0)), F::of(f64::INFINITY), F::of(f64::NAN));
    let log = F::select(a.less(F::of(1.0)), log, end);
    F::select(a.less(F::of(1e-9)), x, log.copysign(x))
}
