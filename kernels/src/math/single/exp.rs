//! Exponential functions: eˣ = 2ⁿ eʳ for an integer n and |r| ≤ ½ ln 2, and eʳ = 1 + r + r² q.

use std::f32::consts::LOG2_E;

use super::bits::{TWO_BIASES, nearest, power_of_two, scaled};
use super::polynomial::polynomial;
use crate::math::binary::{Binary32, Word};
use crate::math::bits::{Whole, clamp};

/// (eʳ − 1 − r) / r² over |r| ≤ ½ ln 2.
const EXP: [f32; 5] = [0.49999994, 0.16666521, 0.04166839, 0.008368705, 0.0013814425];

/// (eʳ − 1 − r − r²/2) / r³ over |r| ≤ ½ ln 2.
const EXPM1: [f32; 5] = [0.16666667, 0.04166648, 0.008333283, 0.001393331, 0.00019909465];

/// (2ᶠ − 1) / f over [−½, ½]. The first coefficient approximates ln 2 as part of the fit.
#[allow(clippy::approx_constant)]
const EXP2: [f32; 6] = [0.6931472, 0.24022649, 0.055503573, 0.009618237, 0.0013390739, 0.00015403744];

/// ln 2: the first 16 bits, whose product with an exponent is exact, and the rest.
pub(super) const LN_2: [f32; 2] = [0.69314575, 1.4286068e-06];

/// eʳ, as a large part and a small one, and n.
#[inline(always)]
pub(super) fn mantissa<F: Binary32, const BIAS: u32>(x: F) -> (F, F, Whole<F>) {
    let n = nearest::<_, BIAS>(x, LOG2_E);
    let r = n.value.mul_add(F::of(-LN_2[1]), n.value.mul_add(F::of(-LN_2[0]), x));
    let high = r + 1.0;
    (high, (r * r).mul_add(polynomial(r, &EXP), r - (high - 1.0)), n)
}

/// e⁻ˣ = 2ⁿ (1 + r + c), as r, c and n.
#[inline(always)]
pub(super) fn reduced<F: Binary32, const BIAS: u32>(x: F) -> (F, F, Whole<F>) {
    let n = nearest::<_, BIAS>(x, -LOG2_E);
    let r = n.value.mul_add(F::of(-LN_2[1]), n.value.mul_add(F::of(-LN_2[0]), -x));
    (r, r * r * polynomial(r, &EXP), n)
}

/// e^−s = 2ⁿ (1 + r + l) for s = `square` + `rest`, as r, which is exact, and l, and n.
#[inline(always)]
pub(super) fn mantissa_of_square<F: Binary32, const BIAS: u32>(square: F, rest: F) -> (F, F, Whole<F>) {
    let n = nearest::<_, BIAS>(square, -LOG2_E);
    let r = n.value.mul_add(F::of(-LN_2[0]), -square);
    let lost = n.value.mul_add(F::of(LN_2[1]), rest);
    let whole = r - lost;
    (r, (whole * whole).mul_add(polynomial(whole, &EXP), -lost), n)
}

/// The same for `x + a · b`, where x is the large part.
#[inline(always)]
pub(super) fn mantissa_of_sum<F: Binary32, const BIAS: u32>(x: F, a: F, b: F) -> (F, F, Whole<F>) {
    let n = nearest::<_, BIAS>(a.mul_add(b, x), LOG2_E);
    let r = n.value.mul_add(F::of(-LN_2[1]), a.mul_add(b, n.value.mul_add(F::of(-LN_2[0]), x)));
    let high = r + 1.0;
    (high, (r * r).mul_add(polynomial(r, &EXP), r - (high - 1.0)), n)
}

/// eʳ − 1, as a large part, which is r, and a small one, which includes the rounding error of r; and n.
#[inline(always)]
pub(super) fn mantissa_less_one<F: Binary32, const BIAS: u32>(x: F) -> (F, F, Whole<F>) {
    let n = nearest::<_, BIAS>(x, LOG2_E);
    let exact = n.value.mul_add(F::of(-LN_2[0]), x);
    let r = n.value.mul_add(F::of(-LN_2[1]), exact);
    let lost = n.value.mul_add(F::of(-LN_2[1]), exact - r);
    let rest = (r * r).mul_add(r.mul_add(polynomial(r, &EXPM1), F::of(0.5)), lost);
    (r, rest, n)
}

#[inline(always)]
pub fn exp<F: Binary32>(x: F) -> F {
    let (high, low, n) = mantissa::<_, TWO_BIASES>(clamp(x, -104.0, 89.0));
    scaled(high + low, n)
}

#[inline(always)]
pub fn exp2<F: Binary32>(x: F) -> F {
    let x = clamp(x, -151.0, 129.0);
    let n = nearest::<_, TWO_BIASES>(x, 1.0);
    let f = x - n.value;
    let [first, higher @ ..] = EXP2;
    let high = f.mul_add(F::of(first), F::of(1.0));
    let low = (f * f).mul_add(polynomial(f, &higher), f.mul_add(F::of(first), F::of(1.0) - high));
    scaled(high + low, n)
}

#[inline(always)]
pub fn expm1<F: Binary32>(x: F) -> F {
    let (r, rest, n) = mantissa_less_one::<_, TWO_BIASES>(clamp(x, -18.0, 89.0));
    // Scaled by ½, because 2¹²⁸ overflows.
    let scale = power_of_two::<F>(n.bits - Word::of(128));
    let whole = scale - 0.5;
    let high = scale.mul_add(r, whole);
    let low = scale.mul_add(r, whole - high) + scale.mul_add(rest, (scale - whole) - 0.5);
    // A tiny argument is the result; halving it would lose its last digit.
    F::select(x.abs().less(F::of(1e-8)), x, (high + low) * 2.0)
}
