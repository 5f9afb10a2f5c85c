//! Rounding of singles without branches, calls, or instructions that only some levels have.

use crate::math::binary::{Binary32, Word};
use crate::math::bits::Whole;

/// Adding this number shifts the fraction out of a single: 1.5 · 2²³.
const SHIFT: f32 = 12_582_912.0;

/// The integer nearest to `a · b`, for |a · b| < 2²¹. Its bits include the bias of an exponent.
#[inline(always)]
pub fn nearest<F: Binary32, const BIAS: u32>(a: F, b: f32) -> Whole<F> {
    let shift = SHIFT + BIAS as f32;
    let shifted = a.mul_add(F::of(b), F::of(shift));
    Whole { value: shifted - shift, bits: shifted.to_bits() }
}

/// 2 to the power of `bits` − 127, for `bits` from 1 to 254.
#[inline(always)]
pub fn power_of_two<F: Binary32>(bits: F::Bits) -> F {
    F::from_bits(bits << 23)
}

/// Twice the bias of an exponent.
pub const TWO_BIASES: u32 = 254;

/// `x · 2ⁿ` for |n| ≤ 250, where n has two biases: in two steps, each with half of n and one bias.
#[inline(always)]
pub fn scaled<F: Binary32>(x: F, n: Whole<F>) -> F {
    let half = n.bits >> 1;
    x * power_of_two::<F>(half) * power_of_two::<F>(n.bits - half)
}

/// The bias of an exponent and 64.
pub const SINKING: u32 = 127 + 64;

/// `x · 2ⁿ` for −190 ≤ n ≤ 63, where n has the bias [`SINKING`]. It is rounded once, even if the result is denormal.
#[inline(always)]
pub fn sunk<F: Binary32>(x: F, n: Whole<F>) -> F {
    const LAST: f32 = 1.0 / 18_446_744_073_709_551_616.0;
    x * power_of_two::<F>(n.bits) * LAST
}

/// `x = 2ᵏ m` with √½ ≤ m < √2, as (k, m), for positive normal x; k includes `bias`.
#[inline(always)]
pub fn exponent_and_mantissa<F: Binary32>(x: F, bias: F) -> (F, F) {
    const LEAST: u32 = std::f32::consts::FRAC_1_SQRT_2.to_bits();
    const FRACTION: u32 = (1 << 23) - 1;
    // Treats √½ as if it were 1, so that the exponent changes at √½ 2ᵏ.
    let bits = x.to_bits().wrapping_add(Word::of(1.0f32.to_bits() - LEAST));
    (F::of_signed(bits >> 23) - bias, F::from_bits((bits & Word::of(FRACTION)) + Word::of(LEAST)))
}
