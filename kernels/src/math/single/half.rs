//! Rounding to half floats: to the nearest, ties to even. Numbers beyond the largest become infinite.

use crate::math::binary::{Binary32, Word};

/// The nearest bfloat16, which is the upper half of an `f32`.
#[inline(always)]
pub fn as_bfloat16<F: Binary32>(x: F) -> F {
    let bits = x.to_bits();
    let is_odd = (bits >> 16) & Word::of(1);
    let rounded = bits.wrapping_add(Word::of(0x7fff)).wrapping_add(is_odd);
    // NaN stays one, with its sign.
    let quiet = bits | Word::of(0x0040_0000);
    F::from_bits(Word::select(x.equal(x), rounded, quiet) & Word::of(0xffff_0000))
}

/// The nearest float16.
#[inline(always)]
pub fn as_float16<F: Binary32>(x: F) -> F {
    x.nearest_float16()
}

/// The nearest float16, by arithmetic.
#[inline(always)]
pub fn nearest_float16<F: Binary32>(x: F) -> F {
    // The power of two of the number, or that of the least normal float16.
    let (power, least) = (F::from_bits(x.to_bits() & Word::of(0x7f80_0000)), F::of(1.0 / 16384.0));
    let power = F::select(power.less(least), least, power);
    // A sum with 1.5 · 2¹³ of it has ten bits of the number behind its own leading bit.
    let large = power * 12288.0;
    let finite = ((x.abs() + large) - large).copysign(x);
    F::select(F::of(65520.0).less_equal(x.abs()), F::of(f32::INFINITY).copysign(x), finite)
}
