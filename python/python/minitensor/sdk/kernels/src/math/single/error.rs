//! The error function.

use super::bits::{SINKING, power_of_two, sunk};
use super::exp::{mantissa_of_square, mantissa_of_sum};
use super::polynomial::{long_polynomial, polynomial};
use crate::math::bits::{clamp, select};
use crate::math::error::errors;

/// erf(x) / x − 1 by x² over |x| ≤ 0.9.
const ERF: [f32; 7] = [0.12837917, -0.37612635, 0.11283715, -0.026860507, 0.0052038566, -0.0008175608, 8.51297e-05];

/// −ln(erfc x) / x − 2 by x − 1 over 0.9 ≤ x ≤ 4.
const ERF_TAIL: [f32; 6] = [-0.15039447, 0.7893619, 0.053742297, -0.012170816, 0.0021456159, -0.00021412711];

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

errors! {
    f32, long_polynomial, tail polynomial, mantissa_of_sum::<127>, mantissa_of_square, power_of_two,
    erf far 0.9 end 4.0, erfc pole 1.0 end 10.1, normal pole 1.75 end 14.5, coefficients 15
}
