//! The cube root.

use crate::math::bits::select;

/// Dividing the exponent by three and a linear function of the fraction yield 5 bits. Each of two steps of Halley's
/// method triples them. One step of Newton's method, from a root that is short enough for its square to be exact,
/// rounds the result.
#[inline(always)]
pub fn cbrt(x: f64) -> f64 {
    // Two thirds of the bias, minus the mean error of the linear function.
    const TWO_THIRDS: u64 = 0x2A9F_7893;
    const TWO_54: f64 = 18_014_398_509_481_984.0;
    const TWO_18: f64 = 262_144.0;
    let a = x.abs();
    // Scaled away from the ends of the range, where doubling would overflow or digits would be lost.
    let (small, large) = (a < 1e-200, a > 1e200);
    let scaled = a * select(small, TWO_54, select(large, 1.0 / TWO_54, 1.0));
    let third = ((scaled.to_bits() >> 32) * 0x5555_5556) >> 32;
    let mut root = f64::from_bits((third + TWO_THIRDS) << 32);
    for _ in 0..2 {
        let cube = root * root * root;
        root *= (cube + 2.0 * scaled) / (2.0 * cube + scaled);
    }
    let short = f64::from_bits(root.to_bits() & !0x7FF_FFFF);
    let quotient = scaled / (short * short);
    let root = short + short * ((quotient - short) / (2.0 * short + quotient));
    let root = root * select(small, 1.0 / TWO_18, select(large, TWO_18, 1.0));
    select((a > 0.0) & (a < f64::INFINITY), root, a).copysign(x)
}
