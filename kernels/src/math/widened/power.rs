//! Powers and roots.

use std::f64::consts::LOG2_E;

use super::exp::exp2;
use super::log::exact_log;
use crate::math::bits::{nearest, select};

/// 2 to the `exponent · log₂ |x|`. The exponent determines the sign and NaN, as in C99: it may be an even or odd
/// integer, or no integer.
#[inline(always)]
pub fn pow(x: f64, exponent: f64) -> f64 {
    let a = x.abs();
    // Accurate to many digits, because it is multiplied and then exponentiated.
    let log2 = exact_log(a) * LOG2_E;
    // 1 to any power, and any number to the power 0, is 1, even if the other argument is infinite or NaN.
    let one = (x == 1.0) | (exponent == 0.0);
    let unit = one | (a == 1.0) & (exponent.abs() == f64::INFINITY);
    let size = exp2(select(unit, 0.0, exponent * log2));
    // From 2²⁴ on, singles are even.
    let e = select(exponent.abs() < 16_777_216.0, exponent, 0.0);
    let whole = nearest(e).value == e;
    let odd = whole & (nearest(0.5 * e).value != 0.5 * e);
    let undefined = (x < 0.0) & (a < f64::INFINITY) & !whole;
    let signed = select(odd & x.is_sign_negative(), -size, size);
    select(undefined, f64::NAN, signed)
}

/// Dividing the exponent by three and a linear function of the fraction yield 5 bits; each step of Halley's method
/// triples them.
#[inline(always)]
pub fn cbrt(x: f64) -> f64 {
    // A third of the bits of the upper word as a number, and two thirds of the bias, minus the mean error of the linear
    // function.
    const TWO_THIRDS: u64 = 0x2A9F_7893;
    let a = x.abs();
    let third = ((a.to_bits() >> 32) * 0x5555_5556) >> 32;
    let mut root = f64::from_bits((third + TWO_THIRDS) << 32);
    for _ in 0..2 {
        let cube = root * root * root;
        root *= (cube + 2.0 * a) / (2.0 * cube + a);
    }
    select((a > 0.0) & (a < f64::INFINITY), root, a).copysign(x)
}

#[inline(always)]
pub fn hypot(x: f64, y: f64) -> f64 {
    let infinite = (x.abs() == f64::INFINITY) | (y.abs() == f64::INFINITY);
    select(infinite, f64::INFINITY, (x * x + y * y).sqrt())
}
