//! Limits and rounding without branches, calls, or instructions that only some levels have.

use super::binary::{Binary, Binary64, Word};

/// The smaller of `x` and a bound; NaN stays NaN.
#[inline(always)]
pub fn least<F: Binary>(x: F, bound: F::Native) -> F {
    let bound = F::of(bound);
    F::select(bound.less(x), bound, x)
}

/// `x` limited to the bounds; NaN stays NaN.
#[inline(always)]
pub fn clamp<F: Binary>(x: F, low: F::Native, high: F::Native) -> F {
    let low = F::of(low);
    least(F::select(x.less(low), low, x), high)
}

/// Adding this number shifts the fraction out of a double: 1.5 · 2⁵².
const SHIFT: f64 = 6_755_399_441_055_744.0;

/// An integer, as a float and as the low bits of a word.
#[derive(Clone, Copy)]
pub struct Whole<F: Binary> {
    /// The integer as a float.
    pub value: F,
    /// A word whose low bits (9 of a single, 51 of a double) are those of the integer, in two's complement, or of the
    /// integer plus a bias.
    pub bits: F::Bits,
}

/// The nearest integer, ties to even, for |x| < 2⁵¹.
#[inline(always)]
pub fn nearest<F: Binary64>(x: F) -> Whole<F> {
    let shifted = x + SHIFT;
    Whole { value: shifted - SHIFT, bits: shifted.to_bits() }
}

/// The integer nearest to `a · b`, for |a · b| < 2⁵⁰. Its bits include the bias of an exponent.
#[inline(always)]
pub fn biased<F: Binary64, const BIAS: u64>(a: F, b: f64) -> Whole<F> {
    let shift = SHIFT + BIAS as f64;
    let shifted = a.mul_add(F::of(b), F::of(shift));
    Whole { value: shifted - shift, bits: shifted.to_bits() }
}

/// 2 to the power of `n`, for −1022 ≤ n ≤ 1023.
pub const fn constant_power(n: i64) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

/// 2 to the power of `bits` − 1023, for `bits` from 1 to 2046.
#[inline(always)]
pub fn power_of_bits<F: Binary64>(bits: F::Bits) -> F {
    F::from_bits(bits << 52)
}

/// 2ⁿ for −1022 ≤ n ≤ 1023.
#[inline(always)]
pub fn power_of_two<F: Binary64>(n: Whole<F>) -> F {
    F::from_bits((n.bits << 52).wrapping_add(Word::of(1.0f64.to_bits())))
}

/// Negates the number if `bit` of `n` is set.
#[inline(always)]
pub fn flip<F: Binary64>(x: F, n: F::Bits, bit: u32) -> F {
    F::from_bits(x.to_bits() ^ (n >> bit) << 63)
}

/// True if the lowest bit is not set.
#[inline(always)]
pub fn is_even<F: Binary64>(n: F::Bits) -> F::Mask {
    (n & Word::of(1)).equal(Word::of(0))
}

/// Added to the bits of a number, it makes the exponent change at √½ 2ᵏ, as if √½ were 1.
pub const FROM_ROOT: u64 = 1.0f64.to_bits() - std::f64::consts::FRAC_1_SQRT_2.to_bits();

/// `x = 2ᵏ m` with √½ ≤ m < √2, as (k, m), for positive normal x.
#[inline(always)]
pub fn exponent_and_mantissa<F: Binary64>(x: F) -> (F, F) {
    split(x.to_bits().wrapping_add(Word::of(FROM_ROOT)), 1023.0)
}

/// The same, for the sum of the bits of x and [`FROM_ROOT`], and for an exponent with this bias.
#[inline(always)]
pub fn split<F: Binary64>(bits: F::Bits, bias: f64) -> (F, F) {
    const FRACTION: u64 = (1 << 52) - 1;
    const TWO_52: f64 = 4_503_599_627_370_496.0;
    // The exponent is read via 2⁵² + k + bias.
    let exponent = F::from_bits((bits >> 52) | Word::of(TWO_52.to_bits())) - (TWO_52 + bias);
    (exponent, F::from_bits((bits & Word::of(FRACTION)) + Word::of(1.0f64.to_bits() - FROM_ROOT)))
}
