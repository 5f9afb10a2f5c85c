//! Selection and rounding of `f32` without branches, calls, or instructions that only some levels have.

/// Adding this number shifts the fraction out of a single: 1.5 · 2²³.
const SHIFT: f32 = 12_582_912.0;

/// An integer, as a float and as the low bits of a word.
#[derive(Clone, Copy)]
pub struct Whole {
    /// The integer as a float.
    pub value: f32,
    /// A word whose low 9 bits are the integer plus the bias.
    pub bits: u32,
}

/// The integer nearest to `a · b`, for |a · b| < 2²¹. Its bits include the bias of an exponent.
#[inline(always)]
pub fn nearest<const BIAS: u32>(a: f32, b: f32) -> Whole {
    let shift = SHIFT + BIAS as f32;
    let shifted = a.mul_add(b, shift);
    Whole { value: shifted - shift, bits: shifted.to_bits() }
}

/// 2 to the power of `bits` − 127, for `bits` from 1 to 254.
#[inline(always)]
pub fn power_of_two(bits: u32) -> f32 {
    f32::from_bits(bits << 23)
}

/// Twice the bias of an exponent.
pub const TWO_BIASES: u32 = 254;

/// `x · 2ⁿ` for |n| ≤ 250, where n has two biases: in two steps, each with half of n and one bias.
#[inline(always)]
pub fn scaled(x: f32, n: Whole) -> f32 {
    let half = n.bits >> 1;
    x * power_of_two(half) * power_of_two(n.bits - half)
}

/// The bias of an exponent and 64.
pub const SINKING: u32 = 127 + 64;

/// `x · 2ⁿ` for −190 ≤ n ≤ 63, where n has the bias [`SINKING`]. It is rounded once, even if the result is denormal.
#[inline(always)]
pub fn sunk(x: f32, n: Whole) -> f32 {
    const LAST: f32 = 1.0 / 18_446_744_073_709_551_616.0;
    x * power_of_two(n.bits) * LAST
}

/// `x = 2ᵏ m` with √½ ≤ m < √2, as (k, m), for positive normal x; k includes `bias`.
#[inline(always)]
pub fn exponent_and_mantissa(x: f32, bias: f32) -> (f32, f32) {
    const LEAST: u32 = std::f32::consts::FRAC_1_SQRT_2.to_bits();
    const FRACTION: u32 = (1 << 23) - 1;
    // Treats √½ as if it were 1, so that the exponent changes at √½ 2ᵏ.
    let bits = x.to_bits().wrapping_add(1.0f32.to_bits() - LEAST);
    ((bits >> 23) as i32 as f32 - bias, f32::from_bits((bits & FRACTION) + LEAST))
}
