//! Powers, and the length of a vector.

use super::exp::{LN_2, TWO_BIASES, exp_of_pair};
use super::log::{parts, with_ends};
use crate::math::bits::{clamp, power_of_bits, select};
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
pub(super) fn exact_log(x: f64) -> Pair {
    let (k, f) = parts(x);
    let below = 2.0 + f;
    let below_rest = f - (below - 2.0);
    let inverse = 1.0 / below;
    let s = f * inverse;
    let s_rest = inverse * s.mul_add(-below_rest, s.mul_add(-below, f));
    let square = fused_product(s, s);
    let square = pair(square.high, s.mul_add(2.0 * s_rest, square.low));
    let curve = fused_polynomial(square.high, &LOG);
    let rest = fused_product(square.high, curve);
    let factor = ordered_sum(TWO_THIRDS[0], rest.high);
    let factor_rest = factor.low + square.low.mul_add(curve, rest.low + TWO_THIRDS[1]);
    let cube = fused_product(s, square.high);
    let cube_rest = s.mul_add(square.low, s_rest.mul_add(square.high, cube.low));
    let small = fused_product(cube.high, factor.high);
    let small_rest = cube.high.mul_add(factor_rest, cube_rest.mul_add(factor.high, small.low));
    let log = ordered_sum(2.0 * s, small.high);
    let total = ordered_sum(k * LN_2[0], log.high);
    pair(total.high, total.low + k.mul_add(LN_2[1], s_rest.mul_add(2.0, log.low + small_rest)))
}

/// e to the `exponent · ln |x|`. The exponent determines the sign and NaN, as in C99: it may be an even or odd integer,
/// or no integer.
#[inline(always)]
pub fn pow(x: f64, exponent: f64) -> f64 {
    const TWO_52: f64 = 4_503_599_627_370_496.0;
    let a = x.abs();
    let log = exact_log(a);
    let log = pair(with_ends(a, log.high), log.low);
    let power = fused_product(exponent, log.high);
    let inside = power.high.abs() < 750.0;
    let rest = select(inside, exponent.mul_add(log.low, power.low), 0.0);
    // 1 to any power, and any number to the power 0, is 1, even if the other argument is infinite or NaN.
    let size = exponent.abs();
    let unit = (x == 1.0) | (exponent == 0.0) | (a == 1.0) & (size == f64::INFINITY);
    let (high, low, n) = exp_of_pair::<TWO_BIASES>(select(unit, 0.0, clamp(power.high, -750.0, 750.0)), rest);
    let half = n.bits >> 1;
    let result = (high + low) * power_of_bits(half) * power_of_bits(n.bits - half);
    // From 2⁵² on, doubles are integers; from 2⁵³ on, even integers.
    let whole = (size >= TWO_52) | ((size + TWO_52) - TWO_52 == size);
    let half = 0.5 * size;
    let odd = whole & (half < TWO_52) & ((half + TWO_52) - TWO_52 != half);
    let signed = select(odd & x.is_sign_negative(), -result, result);
    select((x < 0.0) & (a < f64::INFINITY) & !whole, f64::NAN, signed)
}

/// √(x² + y²). The arguments are scaled first, so that squares neither underflow nor overflow; the squares and the root
/// have two parts.
#[inline(always)]
pub fn hypot(x: f64, y: f64) -> f64 {
    const SCALE: f64 = power_of_bits(1023 + 600);
    let (x, y) = (x.abs(), y.abs());
    let (a, b) = (select(x < y, y, x), select(x < y, x, y));
    let (small, large) = (a < 1e-120, a > 1e150);
    let scale = select(small, SCALE, select(large, 1.0 / SCALE, 1.0));
    let (a_scaled, b_scaled) = (a * scale, b * scale);
    let (first, second) = (fused_product(a_scaled, a_scaled), fused_product(b_scaled, b_scaled));
    let square = ordered_sum(first.high, second.high);
    let root = square.high.sqrt();
    let left = root.mul_add(-root, square.high) + (square.low + (first.low + second.low));
    let root_rest = select(root > 0.0, left * (0.5 / root), 0.0);
    let length = (root + root_rest) * select(small, 1.0 / SCALE, select(large, SCALE, 1.0));
    select((x == f64::INFINITY) | (y == f64::INFINITY), f64::INFINITY, length)
}
