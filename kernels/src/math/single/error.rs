//! The error function.

use super::bits::{SINKING, power_of_two, sunk};
use super::exp::{mantissa_of_square, mantissa_of_sum};
use super::polynomial::{long_polynomial, polynomial};
use crate::math::bits::{clamp, select};

/// erf(x) / x − 1 by x² over |x| ≤ 0.9.
const ERF: [f32; 7] = [0.12837917, -0.37612635, 0.11283715, -0.026860507, 0.0052038566, -0.0008175608, 8.51297e-05];

/// −ln(erfc x) / x − 2 by x − 1 over 0.9 ≤ x ≤ 4.
const ERF_TAIL: [f32; 6] = [-0.15039447, 0.7893619, 0.053742297, -0.012170816, 0.0021456159, -0.00021412711];

#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let near = x.mul_add(long_polynomial(x * x, &ERF), x);
    let a = clamp(x.abs(), 0.0, 4.0);
    let (high, low, n) = mantissa_of_sum::<127>(-2.0 * a, a, -polynomial(a - 1.0, &ERF_TAIL));
    let far = (high + low).mul_add(-power_of_two(n.bits), 1.0);
    select(a < 0.9, near, far.copysign(x))
}

/// erf(x) / x − 1 by x² over |x| ≤ ½.
const ERF_NEAR: [f32; 5] = [0.12837917, -0.37612617, 0.112830326, -0.026773402, 0.0047564344];

/// (Φ(x) − ½) / x by x² over |x| ≤ 0.3.
const NORMAL_NEAR: [f32; 4] = [0.3989423, -0.06649035, 0.0099722715, -0.0011656175];

/// e^x² erfc(x) (x + 1) by t = 1 / (x + 1) less the first number, over 0.45 ≤ x ≤ 9.5; beyond, results are denormal.
const ERFC: [f32; 13] = [
    0.2900049,
    0.74041593,
    0.6037139,
    -0.18410492,
    -0.5271712,
    0.4451697,
    0.49646056,
    -1.2352966,
    0.38932782,
    2.0134895,
    -3.4429266,
    1.8532784,
    0.09875217,
];

/// e^½x² (1 − Φ(x)) (x + 7/4) by 1 / (x + 7/4), as above, over 0.29 ≤ x ≤ 13.3; beyond, results are denormal.
const NORMAL: [f32; 13] = [
    0.21000381, 0.57669747, 0.94495374, 0.1420096, -1.7601998, 0.25934264, 5.3183002, -6.8778787, -11.721904,
    46.697018, -27.885227, -102.02126, 153.71806,
];

/// e^−s p(1 / (a + pole)) / (a + pole) for s = `square` + `rest`, where p changes little (after Shepherd and
/// Laframboise, 1981). Each of the three factors has two parts.
#[inline(always)]
fn tail(a: f32, pole: f32, square: f32, rest: f32, table: &[f32; 13]) -> f32 {
    let [anchor, first, second, higher @ ..] = table;
    let below = a + pole;
    let inverse = 1.0 / below;
    // What the inverse lacks, in parts of itself.
    let left = (a - (below - pole)).mul_add(-inverse, inverse.mul_add(-below, 1.0));
    let t = inverse - anchor;
    let linear = second.mul_add(t, *first);
    let slope = t.mul_add(2.0 * higher[0], *second);
    let curve = (t * t) * long_polynomial(t, higher);
    let slow = linear + curve;
    let slow_rest = second.mul_add(t, first - linear) + (curve - (slow - linear));
    let ratio = slow * inverse;
    let lacking = left.mul_add(inverse.mul_add(slope, slow), slow_rest);
    let ratio_rest = inverse.mul_add(lacking, slow.mul_add(inverse, -ratio));
    let (r, small, n) = mantissa_of_square::<SINKING>(square, rest);
    let high = ratio.mul_add(r, ratio);
    let low = ratio.mul_add(small, ratio.mul_add(r, ratio - high));
    sunk(high + (1.0 + r + small).mul_add(ratio_rest, low), n)
}

#[inline(always)]
pub fn erfc(x: f32) -> f32 {
    let a = clamp(x.abs(), 0.0, 10.1);
    let square = a * a;
    let right = tail(a, 1.0, square, a.mul_add(a, -square), &ERFC);
    let far = select(x < 0.0, 2.0 - right, right);
    let near = 1.0 - x.mul_add(long_polynomial(square, &ERF_NEAR), x);
    select(a < 0.475, near, far)
}

/// Φ(x), the share of the normal distribution below x.
#[inline(always)]
pub fn normal_cdf(x: f32) -> f32 {
    let a = clamp(x.abs(), 0.0, 14.5);
    let half = 0.5 * a;
    let square = half * a;
    let left = tail(a, 1.75, square, half.mul_add(a, -square), &NORMAL);
    let far = select(x > 0.0, 1.0 - left, left);
    let near = x.mul_add(long_polynomial(x * x, &NORMAL_NEAR), 0.5);
    select(a < 0.3, near, far)
}
