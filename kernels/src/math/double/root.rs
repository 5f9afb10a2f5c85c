//! The cube root.

use crate::math::binary::{Binary64, Word};

/// Dividing the exponent by three and a linear function of the fraction yield 5 bits. Each of two steps of Halley's
/// method triples them. One step of Newton's method, from a root that is short enough for its square to be exact,
/// rounds the result.
#[inline(always)]
pub fn cbrt<F: Binary64>(x: F) -> F {
    // Two thirds of the bias, minus the mean error of the linear function.
    const TWO_THIRDS: u64 = 0x2A9F_7893;
    const TWO_54: f64 = 18_014_398_509_481_984.0;
    const TWO_18: f64 = 262_144.0;
    let a = x.abs();
    // Scaled away from the ends of the range, where doubling would overflow or digits would be lost.
    let (small, large) = (a.less(F::of(1e-200)), F::of(1e200).less(a));
    let scaled = a * F::select(small, F::of(TWO_54), F::select(large, F::of(1.0 / TWO_54), F::of(1.0)));
    let third = ((scaled.to_bits() >> 32) * Word::of(0x5555_5556)) >> 32;
    let mut root = F::from_bits((third + Word::of(TWO_THIRDS)) << 32);
    for _ in 0..2 {
        let cube = root * root * root;
        root = root * ((cube + scaled * 2.0) / (cube * 2.0 + scaled));
    }
    let short = F::from_bits(root.to_bits() & Word::of(!0x7FF_FFFF));
    let quotient = scaled / (short * short);
    let root = short + short * ((quotient - short) / (short * 2.0 + quotient));
    let root = root * F::select(small, F::of(1.0 / TWO_18), F::select(large, F::of(TWO_18), F::of(1.0)));
    F::select(F::of(0.0).less(a) & a.less(F::of(f64::INFINITY)), root, a).copysign(x)
}
