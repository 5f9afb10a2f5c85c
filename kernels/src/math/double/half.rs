//! Rounding to half floats: to the nearest, ties to even. Numbers beyond the largest become infinite.

use crate::math::binary::{Binary64, Word};

/// The nearest bfloat16.
#[inline(always)]
pub fn as_bfloat16<F: Binary64>(x: F) -> F {
    nearest(x, 7, 127)
}

/// The nearest float16.
#[inline(always)]
pub fn as_float16<F: Binary64>(x: F) -> F {
    nearest(x, 10, 15)
}

/// The nearest number with this many bits after the first, and exponents up to `most`.
#[inline(always)]
fn nearest<F: Binary64>(x: F, bits: i32, most: i32) -> F {
    let two = |exponent: i32| f64::from_bits(((1023 + exponent) as u64) << 52);
    // The power of two of the number, or that of the least normal number of the format.
    let (power, least) = (F::from_bits(x.to_bits() & Word::of(0x7ff0_0000_0000_0000)), F::of(two(1 - most)));
    let power = F::select(power.less(least), least, power);
    // A sum with this multiple of it has that many bits of the number behind its own leading bit.
    let large = power * (1.5 * two(52 - bits));
    let finite = ((x.abs() + large) - large).copysign(x);
    let limit = F::of(two(most) * (2.0 - 0.5 * two(-bits)));
    F::select(limit.less_equal(x.abs()), F::of(f64::INFINITY).copysign(x), finite)
}
