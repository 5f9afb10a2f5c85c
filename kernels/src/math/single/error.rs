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

/// e^x² erfc(x) (x + 1) by t = 1 / (x + 1) less the first number, over 0.45 ≤ x ≤ 9.5; beyond, results are denormal. The
/// first two coefficients have two parts.
const ERFC: [f32; 15] = [
    0.39244664,
    0.7998159,
    1.1512796e-08,
    0.5515058,
    -8.441066e-09,
    -0.31464735,
    -0.31675214,
    0.5307595,
    -0.09818055,
    -0.6326389,
    0.9800732,
    -0.26028895,
    -1.4753249,
    1.9307529,
    0.056499716,
];

/// e^½x² (1 − Φ(x)) (x + 7/4) by 1 / (x + 7/4), as above, over 0.29 ≤ x ≤ 13.3; beyond, results are denormal.
const NORMAL: [f32; 15] = [
    0.27832064,
    0.6413681,
    -2.0204336e-08,
    0.9405542,
    -3.3571388e-09,
    -0.19701475,
    -1.4903411,
    1.5279367,
    2.0773075,
    -7.4958835,
    6.2788486,
    16.381933,
    -57.42137,
    12.033788,
    148.65865,
];

/// e^−s p(1 / (a + pole)) / (a + pole) for s = `square` + `rest`, where p changes little (after Shepherd and
/// Laframboise, 1981). Each of the three factors has two parts.
#[inline(always)]
fn tail(a: f32, pole: f32, square: f32, rest: f32, table: &[f32; 15]) -> f32 {
    let [middle, first, first_rest, second, second_rest, higher @ ..] = table;
    let below = a + pole;
    let inverse = 1.0 / below;
    // What the inverse lacks, in parts of itself, and what the difference does.
    let left = (a - (below - pole)).mul_add(-inverse, inverse.mul_add(-below, 1.0));
    let t = inverse - middle;
    let t_rest = inverse.mul_add(left, inverse - (t + middle));
    let linear = second.mul_add(t, *first);
    let slope = t.mul_add(2.0 * higher[0], *second);
    let curve = (t * t).mul_add(long_polynomial(t, higher), second_rest.mul_add(t, *first_rest));
    let slow = linear + curve;
    let slow_rest = second.mul_add(t, first - linear) + (curve - (slow - linear));
    let ratio = slow * inverse;
    let lacking = left.mul_add(slow, t_rest.mul_add(slope, slow_rest));
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
