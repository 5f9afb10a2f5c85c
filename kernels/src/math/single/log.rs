//! Logarithms: ln 2ᵏm = k ln 2 + ln(1 + f), and ln(1 + f) = f − f²/2 + f³ p.

use std::f64::consts::{LOG2_E, LOG10_E};

use super::bits::exponent_and_mantissa;
use super::exp::LN_2;
use super::polynomial::long_polynomial;
use crate::math::bits::select;

/// (ln(1 + f) − f + f²/2) / f³ for √½ ≤ 1 + f < √2.
const LOG: [f32; 9] =
    [0.3333331, -0.24999987, 0.2000222, -0.16669236, 0.14218734, -0.123846486, 0.11872848, -0.11788043, 0.069133304];

/// log₁₀ 2: the first 16 bits, whose product with an exponent is exact, and the rest.
const LOG10_2: [f32; 2] = [0.3010254, 4.605039e-06];

/// `small + ln(1 + f) − f`
#[inline(always)]
pub(super) fn beyond_linear(f: f32, small: f32) -> f32 {
    (f * f).mul_add(f.mul_add(long_polynomial(f, &LOG), -0.5), small)
}

/// k and f of a positive number.
#[inline(always)]
fn parts(x: f32) -> (f32, f32) {
    const TWO_23: f32 = 8_388_608.0;
    let denormal = x < f32::MIN_POSITIVE;
    let (k, m) = exponent_and_mantissa(select(denormal, x * TWO_23, x), select(denormal, 127.0 + 23.0, 127.0));
    (k, m - 1.0)
}

/// The logarithm for arguments that are not positive or not finite, else `log`. It tests the bits once; LLVM would
/// compile comparisons to several tests.
#[inline(always)]
fn with_ends(x: f32, log: f32) -> f32 {
    let positive_and_finite = x.to_bits().wrapping_sub(1) < f32::INFINITY.to_bits() - 1;
    let end = select((x.to_bits() as i32) < 0, f32::NAN, x);
    let end = select(x == 0.0, f32::NEG_INFINITY, end);
    select(positive_and_finite, log, end)
}

/// `k unit + large`, as a large part and a small one. The product of k and the first part of the unit is exact.
#[inline(always)]
pub(super) fn with_exponent(k: f32, unit: [f32; 2], large: f32) -> (f32, f32) {
    let high = k.mul_add(unit[0], large);
    (high, k.mul_add(unit[1], large - k.mul_add(-unit[0], high)))
}

#[inline(always)]
pub fn log(x: f32) -> f32 {
    let (k, f) = parts(x);
    let (high, low) = with_exponent(k, LN_2, f);
    with_ends(x, high + beyond_linear(f, low))
}

/// A logarithm to another base, whose natural logarithm is 1 / `factor`.
#[inline(always)]
fn log_to(x: f32, unit: [f32; 2], factor: [f32; 2]) -> f32 {
    let (k, f) = parts(x);
    // Two parts of ln(1 + f), because the rounding error of one part would be multiplied, too.
    let half = 0.5 * f;
    let square = half * f;
    let high = f - square;
    let rest = ((f - high) - square) - half.mul_add(f, -square);
    let rest = ((f + f) * square).mul_add(long_polynomial(f, &LOG), rest);
    let large = high * factor[0];
    let small = high.mul_add(factor[1], rest.mul_add(factor[0], high.mul_add(factor[0], -large)));
    let (high, low) = with_exponent(k, unit, large);
    with_ends(x, high + (low + small))
}

/// The nearest single and its rounding error.
const fn halves(x: f64) -> [f32; 2] {
    [x as f32, (x - x as f32 as f64) as f32]
}

#[inline(always)]
pub fn log2(x: f32) -> f32 {
    log_to(x, [1.0, 0.0], const { halves(LOG2_E) })
}

#[inline(always)]
pub fn log10(x: f32) -> f32 {
    log_to(x, LOG10_2, const { halves(LOG10_E) })
}

/// 2⁻ᵏ of `x = 2ᵏ m`, or 0 if that would be denormal.
#[inline(always)]
fn inverse_power(x: f32, m: f32) -> f32 {
    let bits = 1.0f32.to_bits() as i32 + (m.to_bits() as i32).wrapping_sub(x.to_bits() as i32);
    f32::from_bits(bits.max(0) as u32)
}

/// ln(1 + x), where the rounding error of 1 + x is added to f.
#[inline(always)]
pub fn log1p(x: f32) -> f32 {
    let one = 1.0 + x;
    let (more, less) = if x > 1.0 { (x, 1.0) } else { (1.0, x) };
    let (k, m) = exponent_and_mantissa(one, 127.0);
    let lost = ((more - one) + less) * inverse_power(one, m);
    let f = (m - 1.0) + lost;
    let rest = lost - (f - (m - 1.0));
    let (high, low) = with_exponent(k, LN_2, f);
    with_ends(one, high + beyond_linear(f, rest.mul_add(-f, rest) + low)).copysign(x)
}
