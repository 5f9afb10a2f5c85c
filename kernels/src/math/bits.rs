//! Selection and rounding without branches, calls, or instructions that only some levels have.

/// `a` if the condition holds, else `b`; both are computed.
#[inline(always)]
pub fn select<T>(condition: bool, a: T, b: T) -> T {
    if condition { a } else { b }
}

/// The smaller of `x` and a bound; NaN stays NaN.
#[inline(always)]
pub fn least<T: Copy + PartialOrd>(x: T, bound: T) -> T {
    select(x > bound, bound, x)
}

/// `x` limited to the bounds; NaN stays NaN.
#[inline(always)]
pub fn clamp<T: Copy + PartialOrd>(x: T, low: T, high: T) -> T {
    let x = select(x < low, low, x);
    select(x > high, high, x)
}

/// Adding this number shifts the fraction out of a double: 1.5 · 2⁵².
const SHIFT: f64 = 6_755_399_441_055_744.0;

/// An integer, as a float and as the low bits of a word.
#[derive(Clone, Copy)]
pub struct Whole {
    /// The integer as a float.
    pub value: f64,
    /// A word whose low 51 bits are those of the integer, in two's complement.
    pub bits: u64,
}

/// The nearest integer, ties to even, for |x| < 2⁵¹.
#[inline(always)]
pub fn nearest(x: f64) -> Whole {
    let shifted = x + SHIFT;
    Whole { value: shifted - SHIFT, bits: shifted.to_bits() }
}

/// The integer nearest to `a · b`, for |a · b| < 2⁵⁰. Its bits include the bias of an exponent.
#[inline(always)]
pub fn biased<const BIAS: u64>(a: f64, b: f64) -> Whole {
    let shift = SHIFT + BIAS as f64;
    let shifted = a.mul_add(b, shift);
    Whole { value: shifted - shift, bits: shifted.to_bits() }
}

/// 2 to the power of `bits` − 1023, for `bits` from 1 to 2046.
#[inline(always)]
pub const fn power_of_bits(bits: u64) -> f64 {
    f64::from_bits(bits << 52)
}

/// 2ⁿ for −1022 ≤ n ≤ 1023.
#[inline(always)]
pub fn power_of_two(n: Whole) -> f64 {
    f64::from_bits((n.bits << 52).wrapping_add(1.0f64.to_bits()))
}

/// Negates the number if `bit` of `n` is set.
#[inline(always)]
pub fn flip(x: f64, n: u64, bit: u32) -> f64 {
    f64::from_bits(x.to_bits() ^ (n >> bit) << 63)
}

/// `x = 2ᵏ m` with √½ ≤ m < √2, as (k, m), for positive normal x.
#[inline(always)]
pub fn exponent_and_mantissa(x: f64) -> (f64, f64) {
    const LEAST: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    const FRACTION: u64 = (1 << 52) - 1;
    const TWO_52: f64 = 4_503_599_627_370_496.0;
    // Treats √½ as if it were 1, so that the exponent changes at √½ 2ᵏ. The exponent is read via 2⁵² + k + 1023.
    let bits = x.to_bits().wrapping_add(1.0f64.to_bits() - LEAST);
    let exponent = f64::from_bits((bits >> 52) | TWO_52.to_bits()) - (TWO_52 + 1023.0);
    (exponent, f64::from_bits((bits & FRACTION) + LEAST))
}
