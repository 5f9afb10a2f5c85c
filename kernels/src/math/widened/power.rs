//! Powers and roots.

use std::f64::consts::LOG2_E;

use super::exp::exp2;
use super::log::exact_log;
use crate::math::binary::{Binary64, Word};
use crate::math::bits::nearest;

/// 2 to the `exponent · log₂ |x|`. The exponent determines the sign and NaN, as in C99: it may be an even or odd
/// integer, or no integer.
#[inline(always)]
pub fn pow<F: Binary64>(x: F, exponent: F) -> F {
    let a = x.abs();
    // Accurate to many digits, because it is multiplied and then exponentiated.
    let log2 = exact_log(a) * LOG2_E;
    // 1 to any power, and any number to the power 0, is 1, even if the other argument is infinite or NaN.
    let one = x.equal(F::of(1.0)) | exponent.equal(F::of(0.0));
    let unit = one | a.equal(F::of(1.0)) & exponent.abs().equal(F::of(f64::INFINITY));
    let size = exp2(F::select(unit, F::of(0.0), exponent * log2));
    // From 2²⁴ on, singles are even.
    let e = F::select(exponent.abs().less(F::of(16_777_216.0)), exponent, F::of(0.0));
    let whole = nearest(e).value.equal(e);
    let odd = whole & (!nearest(e * 0.5).value.equal(e * 0.5));
    let undefined = x.less(F::of(0.0)) & a.less(F::of(f64::INFINITY)) & !whole;
    let signed = F::select(odd & x.to_bits().is_negative(), -size, size);
    F::select(undefined, F::of(f64::NAN), signed)
}

/// Dividing the exponent by three and a linear function of the fraction yield 5 bits; each step of Halley's method
/// triples them.
#[inline(always)]
pub fn cbrt<F: Binary64>(x: F) -> F {
    // A third of the bits of the upper word as a number, and two thirds of the bias, minus the mean error of the linear
    // function.
    const TWO_THIRDS: u64 = 0x2A9F_7893;
    let a = x.abs();
    let third = ((a.to_bits() >> 32) * Word::of(0x5555_5556)) >> 32;
    let mut root = F::from_bits((third + Word::of(TWO_THIRDS)) << 32);
    for _ in 0..2 {
        let cube = root * root * root;
        root = root * ((cube + a * 2.0) / (cube * 2.0 + a));
    }
    F::select(F::of(0.0).less(a) & a.less(F::of(f64::INFINITY)), root, a).copysign(x)
}

#[inline(always)]
pub fn hypot<F: Binary64>(x: F, y: F) -> F {
    let infinite = x.abs().equal(F::of(f64::INFINITY)) | y.abs().equal(F::of(f64::INFINITY));
    F::select(infinite, F::of(f64::INFINITY), (x * x + y * y).sqrt())
}
