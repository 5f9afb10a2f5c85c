//! Logarithms: ln 2ᵏm = k ln 2 + ln(1 + f), and ln(1 + f) = f − f²/2 + f³ p.

use std::f64::consts::{LOG2_E, LOG10_E};

use super::bits::exponent_and_mantissa;
use super::exp::LN_2;
use crate::math::binary::{Binary32, Word};
use crate::math::polynomial::fused_polynomial;

/// (ln(1 + f) − f + f²/2) / f³ for √½ ≤ 1 + f < √2.
const LOG: [f32; 9] =
    [0.3333331, -0.24999987, 0.2000222, -0.16669236, 0.14218734, -0.123846486, 0.11872848, -0.11788043, 0.069133304];

/// log₁₀ 2: the first 16 bits, whose product with an exponent is exact, and the rest.
const LOG10_2: [f32; 2] = [0.3010254, 4.605039e-06];

/// `small + ln(1 + f) − f`
#[inline(always)]
pub(super) fn beyond_linear<F: Binary32>(f: F, small: F) -> F {
    (f * f).mul_add(f.mul_add(fused_polynomial(f, &LOG), F::of(-0.5)), small)
}

/// k and f of a positive number.
#[inline(always)]
fn parts<F: Binary32>(x: F) -> (F, F) {
    const TWO_23: f32 = 8_388_608.0;
    let denormal = x.less(F::of(f32::MIN_POSITIVE));
    let (k, m) = exponent_and_mantissa(
        F::select(denormal, x * TWO_23, x),
        F::select(denormal, F::of(127.0 + 23.0), F::of(127.0)),
    );
    (k, m - 1.0)
}

/// The logarithm for arguments that are not positive or not finite, else `log`. It tests the bits once; LLVM would
/// compile comparisons to several tests.
#[inline(always)]
fn with_ends<F: Binary32>(x: F, log: F) -> F {
    let positive_and_finite = x.to_bits().wrapping_sub(Word::of(1)).less(Word::of(f32::INFINITY.to_bits() - 1));
    let end = F::select(x.to_bits().is_negative(), F::of(f32::NAN), x);
    let end = F::select(x.equal(F::of(0.0)), F::of(f32::NEG_INFINITY), end);
    F::select(positive_and_finite, log, end)
}

/// `k unit + large`, as a large part and a small one. The product of k and the first part of the unit is exact.
#[inline(always)]
pub(super) fn with_exponent<F: Binary32>(k: F, unit: [f32; 2], large: F) -> (F, F) {
    let high = k.mul_add(F::of(unit[0]), large);
    (high, k.mul_add(F::of(unit[1]), large - k.mul_add(F::of(-unit[0]), high)))
}

#[inline(always)]
pub fn log<F: Binary32>(x: F) -> F {
    let (k, f) = parts(x);
    let (high, low) = with_exponent(k, LN_2, f);
    with_ends(x, high + beyond_linear(f, low))
}

/// A logarithm to another base, whose natural logarithm is 1 / `factor`.
#[inline(always)]
fn log_to<F: Binary32>(x: F, unit: [f32; 2], factor: [f32; 2]) -> F {
    let (k, f) = parts(x);
    // Two parts of ln(1 + f), because the rounding error of one part would be multiplied, too.
    let half = f * 0.5;
    let square = half * f;
    let high = f - square;
    let rest = ((f - high) - square) - half.mul_add(f, -square);
    let rest = ((f + f) * square).mul_add(fused_polynomial(f, &LOG), rest);
    let large = high * factor[0];
    let first = F::of(factor[0]);
    let small = high.mul_add(F::of(factor[1]), rest.mul_add(first, high.mul_add(first, -large)));
    let (high, low) = with_exponent(k, unit, large);
    with_ends(x, high + (low + small))
}

/// The nearest single and its rounding error.
const fn halves(x: f64) -> [f32; 2] {
    [x as f32, (x - x as f32 as f64) as f32]
}

#[inline(always)]
pub fn log2<F: Binary32>(x: F) -> F {
    log_to(x, [1.0, 0.0], const { halves(LOG2_E) })
}

#[inline(always)]
pub fn log10<F: Binary32>(x: F) -> F {
    log_to(x, LOG10_2, const { halves(LOG10_E) })
}

/// 2⁻ᵏ of `x = 2ᵏ m`, or 0 if that would be denormal.
#[inline(always)]
fn inverse_power<F: Binary32>(x: F, m: F) -> F {
    let bits = m.to_bits().wrapping_sub(x.to_bits()).wrapping_add(Word::of(1.0f32.to_bits()));
    F::from_bits(Word::select(bits.is_negative(), Word::of(0), bits))
}

/// ln(1 + x), where the rounding error of 1 + x is added to f.
#[inline(always)]
pub fn log1p<F: Binary32>(x: F) -> F {
    let one = x + 1.0;
    let large = F::of(1.0).less(x);
    let (more, less) = (F::select(large, x, F::of(1.0)), F::select(large, F::of(1.0), x));
    let (k, m) = exponent_and_mantissa(one, F::of(127.0));
    let lost = ((more - one) + less) * inverse_power(one, m);
    let f = (m - 1.0) + lost;
    let rest = lost - (f - (m - 1.0));
    let (high, low) = with_exponent(k, LN_2, f);
    with_ends(one, high + beyond_linear(f, rest.mul_add(-f, rest) + low)).copysign(x)
}
