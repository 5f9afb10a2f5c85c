//! Powers, and the length of a vector.

use super::exp::{LN_2, TWO_BIASES, exp_of_pair};
use super::log::{parts, with_ends};
use crate::math::binary::{Binary64, Word};
use crate::math::bits::{clamp, constant_power, power_of_bits};
use crate::math::pair::{Pair, fused_product, ordered_sum, pair};
use crate::math::polynomial::fused_polynomial;

/// (2 atanh s − 2 s − ⅔ s³) / s⁵ by s² over |s| ≤ (√2 − 1) / (√2 + 1).
const LOG: [f64; 8] = [
    0.3999999999999998,
    0.28571428571445134,
    0.2222222221753092,
    0.18181818871016098,
    0.15384556821908746,
    0.13336319345508263,
    0.11674778799792233,
    0.11989347763907253,
];

/// ⅔ and its rounding error.
const TWO_THIRDS: [f64; 2] = [2.0 / 3.0, 3.700743415417188e-17];

/// ln x of a positive number, to at least 65 bits: 2 atanh s = 2 s + ⅔ s³ + …, where the first two terms have two
/// parts.
#[inline(always)]
pub(super) fn exact_log<F: Binary64>(x: F) -> Pair<F> {
    let (k, f) = parts(x);
    let below = f + 2.0;
    let below_rest = f - (below - 2.0);
    let inverse = F::of(1.0) / below;
    let s = f * inverse;
    let s_rest = inverse * s.mul_add(-below_rest, s.mul_add(-below, f));
    let square = fused_product(s, s);
    let square = pair(square.high, s.mul_add(s_rest * 2.0, square.low));
    let curve = fused_polynomial(square.high, &LOG);
    let rest = fused_product(square.high, curve);
    let factor = ordered_sum(F::of(TWO_THIRDS[0]), rest.high);
    let factor_rest = factor.low + square.low.mul_add(curve, rest.low + TWO_THIRDS[1]);
    let cube = fused_product(s, square.high);
    let cube_rest = s.mul_add(square.low, s_rest.mul_add(square.high, cube.low));
    let small = fused_product(cube.high, factor.high);
    let small_rest = cube.high.mul_add(factor_rest, cube_rest.mul_add(factor.high, small.low));
    let log = ordered_sum(s * 2.0, small.high);
    let total = ordered_sum(k * LN_2[0], log.high);
    pair(total.high, total.low + k.mul_add(F::of(LN_2[1]), s_rest.mul_add(F::of(2.0), log.low + small_rest)))
}

/// e to the `exponent · ln |x|`. The exponent determines the sign and NaN, as in C99: it may be an even or odd integer,
/// or no integer.
#[inline(always)]
pub fn pow<F: Binary64>(x: F, exponent: F) -> F {
    const TWO_52: f64 = 4_503_599_627_370_496.0;
    let a = x.abs();
    let log = exact_log(a);
    let log = pair(with_ends(a, log.high), log.low);
    let power = fused_product(exponent, log.high);
    let inside = power.high.abs().less(F::of(750.0));
    let rest = F::select(inside, exponent.mul_add(log.low, power.low), F::of(0.0));
    // 1 to any power, and any number to the power 0, is 1, even if the other argument is infinite or NaN.
    let size = exponent.abs();
    let unit =
        x.equal(F::of(1.0)) | exponent.equal(F::of(0.0)) | a.equal(F::of(1.0)) & size.equal(F::of(f64::INFINITY));
    let (high, low, n) =
        exp_of_pair::<_, TWO_BIASES>(F::select(unit, F::of(0.0), clamp(power.high, -750.0, 750.0)), rest);
    let half = n.bits >> 1;
    let result = (high + low) * power_of_bits::<F>(half) * power_of_bits::<F>(n.bits - half);
    // From 2⁵² on, doubles are integers; from 2⁵³ on, even integers.
    let whole = F::of(TWO_52).less_equal(size) | ((size + TWO_52) - TWO_52).equal(size);
    let half = size * 0.5;
    let odd = whole & half.less(F::of(TWO_52)) & !((half + TWO_52) - TWO_52).equal(half);
    let signed = F::select(odd & x.to_bits().is_negative(), -result, result);
    F::select(x.less(F::of(0.0)) & a.less(F::of(f64::INFINITY)) & !whole, F::of(f64::NAN), signed)
}

/// √(x² + y²). The arguments are scaled first, so that squares neither underflow nor overflow; the squares and the root
/// have two parts.
#[inline(always)]
pub fn hypot<F: Binary64>(x: F, y: F) -> F {
    const SCALE: f64 = constant_power(600);
    let (x, y) = (x.abs(), y.abs());
    let (a, b) = (F::select(x.less(y), y, x), F::select(x.less(y), x, y));
    let (small, large) = (a.less(F::of(1e-120)), F::of(1e150).less(a));
    let scale = F::select(small, F::of(SCALE), F::select(large, F::of(1.0 / SCALE), F::of(1.0)));
    let (a_scaled, b_scaled) = (a * scale, b * scale);
    let (first, second) = (fused_product(a_scaled, a_scaled), fused_product(b_scaled, b_scaled));
    let square = ordered_sum(first.high, second.high);
    let root = square.high.sqrt();
    let left = root.mul_add(-root, square.high) + (square.low + (first.low + second.low));
    let root_rest = F::select(F::of(0.0).less(root), left * (F::of(0.5) / root), F::of(0.0));
    let length = (root + root_rest) * F::select(small, F::of(1.0 / SCALE), F::select(large, F::of(SCALE), F::of(1.0)));
    F::select(x.equal(F::of(f64::INFINITY)) | y.equal(F::of(f64::INFINITY)), F::of(f64::INFINITY), length)
}
