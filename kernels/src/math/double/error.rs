//! The error function, and the normal distribution.

use super::exp::{exp_of_square, exp_of_sum};
use crate::math::bits::{clamp, power_of_bits, select};
use crate::math::polynomial::fused_polynomial;

/// erf(x) / x − 1 by x² over |x| ≤ 1.
const ERF: [f64; 13] = [
    0.1283791670955126,
    -0.3761263890318375,
    0.11283791670954828,
    -0.026866170645067022,
    0.005223977624721561,
    -0.000854832697521732,
    0.00012055330904373408,
    -1.4925590233495128e-05,
    1.6460918980750931e-06,
    -1.6349441397434055e-07,
    1.4653871132894412e-08,
    -1.13498770809419e-09,
    5.918091772996597e-11,
];

/// −ln(erfc x) / x − 2 by x − 1 over 1 ≤ x ≤ 6.
const ERF_TAIL: [f64; 20] = [
    -0.15039449006675176,
    0.789362004301543,
    0.05374525205694228,
    -0.012184154010448789,
    0.0021503285773088183,
    -0.00017242557241552777,
    -6.489901815783037e-05,
    3.8628142414315465e-05,
    -1.148564483094575e-05,
    1.9057278929487317e-06,
    1.1620840880524831e-07,
    -2.2170610646835625e-07,
    9.606629980596545e-08,
    -2.7969314993928867e-08,
    6.11883068223339e-09,
    -1.0189205420741822e-09,
    1.2595690219985183e-10,
    -1.0906750449568032e-11,
    5.896646363870876e-13,
    -1.494833632438223e-14,
];

#[inline(always)]
pub fn erf(x: f64) -> f64 {
    let near = x.mul_add(fused_polynomial(x * x, &ERF), x);
    let a = clamp(x.abs(), 0.0, 6.0);
    let (high, low, n) = exp_of_sum::<1023>(-2.0 * a, a, -fused_polynomial(a - 1.0, &ERF_TAIL));
    let far = (high + low).mul_add(-power_of_bits(n.bits), 1.0);
    select(a < 1.0, near, far.copysign(x))
}

/// erf(x) / x − 1 by x² over |x| ≤ 0.475.
const ERF_NEAR: [f64; 9] = [
    0.12837916709551256,
    -0.37612638903183604,
    0.11283791670938108,
    -0.02686617063755248,
    0.005223977456143387,
    -0.0008548305745727012,
    0.00012053758526709594,
    -1.4857476078049958e-05,
    1.485506678068625e-06,
];

/// (Φ(x) − ½) / x by x² over |x| ≤ 0.3.
const NORMAL_NEAR: [f64; 7] = [
    0.3989422804014327,
    -0.0664903800669051,
    0.009973557009975683,
    -0.0011873282116833302,
    0.00011543457337968484,
    -9.44289045835057e-06,
    6.5240792059555e-07,
];

/// e^x² erfc(x) (x + 11/8) by t = 1 / (x + 11/8) less the first number, over 0.45 ≤ x ≤ 27.3; beyond, results are 0. The
/// first two coefficients have two parts.
const ERFC: [f64; 31] = [
    0.291409394370066,
    0.85612316561542,
    -2.5702216250756735e-17,
    1.192409827092444,
    -4.013989731018695e-17,
    0.4260780657184921,
    -1.0557380084941055,
    -0.4490600766329625,
    1.912634306368968,
    -0.47930036884930083,
    -3.592055638795851,
    5.131433854410324,
    2.2799295565085362,
    -16.911752933520518,
    20.6111807761101,
    14.086568298313553,
    -89.06632231596416,
    128.90002924224348,
    28.92648734054146,
    -496.6435081278545,
    997.9216583536842,
    -600.1517080216261,
    -2060.9888129790575,
    8700.874450084839,
    -16205.544603167606,
    -10072.894693703145,
    107723.75500073019,
    -96999.10142219932,
    -239346.4882336074,
    308391.2985464118,
    134604.9872759729,
];

/// e^½x² (1 − Φ(x)) (x + 9/4) by 1 / (x + 9/4), as above, over 0.29 ≤ x ≤ 38.6; beyond, results are 0.
const NORMAL: [f64; 31] = [
    0.16293767287656974,
    0.5945258855776897,
    -2.8906672154751986e-17,
    1.523773121967071,
    5.93684784178001e-17,
    1.962906201522574,
    -1.19518057154675,
    -6.6657215668956065,
    4.014409719440011,
    28.52218220673719,
    -40.01325918418901,
    -119.73887320910498,
    400.22116738680745,
    160.5956130743484,
    -3086.5248136765294,
    5063.345482665989,
    12628.957639904327,
    -71527.90480259254,
    79338.83805815502,
    406803.0265137638,
    -1907975.5150569985,
    1969008.015612098,
    12453011.215339538,
    -58211118.321328565,
    53853817.27958581,
    380519856.64891267,
    -1433499770.0921016,
    785656810.5922917,
    6185982709.269697,
    -15439955913.439241,
    11756830312.461414,
];

/// e^−s p(1 / (a + pole)) / (a + pole) for s = `square` + `rest`, where p changes little (after Shepherd and
/// Laframboise, 1981). Each of the three factors has two parts.
#[inline(always)]
fn tail(a: f64, pole: f64, square: f64, rest: f64, table: &[f64; 31]) -> f64 {
    let [middle, first, first_rest, second, second_rest, higher @ ..] = table;
    let below = a + pole;
    let inverse = 1.0 / below;
    // What the inverse lacks, in parts of itself, and what the difference does.
    let left = (a - (below - pole)).mul_add(-inverse, inverse.mul_add(-below, 1.0));
    let t = inverse - middle;
    let t_rest = inverse.mul_add(left, inverse - (t + middle));
    let linear = second.mul_add(t, *first);
    let slope = t.mul_add(2.0 * higher[0], *second);
    let curve = (t * t).mul_add(fused_polynomial(t, higher), second_rest.mul_add(t, *first_rest));
    let slow = linear + curve;
    let slow_rest = second.mul_add(t, first - linear) + (curve - (slow - linear));
    let ratio = slow * inverse;
    let lacking = left.mul_add(slow, t_rest.mul_add(slope, slow_rest));
    let ratio_rest = inverse.mul_add(lacking, slow.mul_add(inverse, -ratio));
    let (r, small, n) = exp_of_square::<SINKING>(square, rest);
    let high = ratio.mul_add(r, ratio);
    let low = ratio.mul_add(small, ratio.mul_add(r, ratio - high));
    // In two steps, so that it is rounded once even where it is denormal.
    (high + (1.0 + r + small).mul_add(ratio_rest, low)) * power_of_bits(n.bits) * LAST
}

/// The bias of an exponent and 600.
const SINKING: u64 = 1023 + 600;

/// 2⁻⁶⁰⁰
const LAST: f64 = power_of_bits(1023 - 600);

#[inline(always)]
pub fn erfc(x: f64) -> f64 {
    let a = clamp(x.abs(), 0.0, 28.0);
    let square = a * a;
    let right = tail(a, 1.375, square, a.mul_add(a, -square), &ERFC);
    let far = select(x < 0.0, 2.0 - right, right);
    let near = 1.0 - x.mul_add(fused_polynomial(square, &ERF_NEAR), x);
    select(a < 0.475, near, far)
}

/// Φ(x), the share of the normal distribution below x.
#[inline(always)]
pub fn normal_cdf(x: f64) -> f64 {
    let a = clamp(x.abs(), 0.0, 39.5);
    let half = 0.5 * a;
    let square = half * a;
    let left = tail(a, 2.25, square, half.mul_add(a, -square), &NORMAL);
    let far = select(x > 0.0, 1.0 - left, left);
    let near = x.mul_add(fused_polynomial(x * x, &NORMAL_NEAR), 0.5);
    select(a < 0.3, near, far)
}
