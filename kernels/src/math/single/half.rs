//! Rounding to half floats: to the nearest, ties to even. Numbers beyond the largest become infinite.

use crate::math::binary::{Binary32, Word};

/// The nearest bfloat16, which is the upper half of an `f32`.
#[inline(always)]
pub fn as_bfloat16<F: Binary32>(x: F) -> F {
    let (least, half, quiet) = (Word::of(1), Word::of(0x7fff), Word::of(0x40));
    let upper = x.to_bits() >> 16;
    let rounded = x.to_bits().wrapping_add(half).wrapping_add(upper & least) >> 16;
    F::from_bits(Word::select(x.equal(x), rounded, upper | quiet) << 16)
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
