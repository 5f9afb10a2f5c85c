//! The error function.

use super::bits::{SINKING, power_of_two, sunk};
use super::exp::{mantissa_of_square, mantissa_of_sum};
use super::polynomial::polynomial;
use crate::math::binary::Binary32;
use crate::math::bits::least;
use crate::math::error::errors;
use crate::math::polynomial::fused_polynomial;

/// erf(x) / x − 1 by x² over |x| ≤ 0.9.
const ERF: [f32; 7] = [0.12837917, -0.37612635, 0.11283715, -0.026860507, 0.0052038566, -0.0008175608, 8.51297e-05];

/// −ln(erfc x) / x − 2 by x − 1 over 0.9 ≤ x ≤ 4.
const ERF_TAIL: [f32; 6] = [-0.15039447, 0.7893619, 0.053742297, -0.012170816, 0.0021456159, -0.00021412711];

/// (1 / (e^x² erfc x) − 1) / x − 3/2 for 0 ≤ x ≤ 10.2, as a quotient; beyond, results are 0.
const ERFC_OVER: [f32; 6] = [-0.37162083, -0.25872105, -0.04720324, 0.025730742, 0.015188329, 0.002698404];
const ERFC_UNDER: [f32; 6] = [1.0, 1.4314611, 0.9970513, 0.40018424, 0.0921016, 0.009903991];

/// (1 / (2 e^½x² (1 − Φ(x))) − 1) / x − 71/64 for 0 ≤ x ≤ 14.5, as a quotient; beyond, results are 0.
const NORMAL_OVER: [f32; 6] = [-0.31149045, -0.17886437, -0.04106451, -0.00047292086, 0.0015653366, 0.00025285486];
const NORMAL_UNDER: [f32; 6] = [1.0, 1.0128216, 0.49908912, 0.14172773, 0.023080517, 0.0017566589];

errors! {
    f32 Binary32, u32, fused_polynomial, tail polynomial, mantissa_of_sum::<127>, mantissa_of_square, power_of_two,
    erf far 0.9 end 4.0, erfc end 10.2, normal end 14.5 top rest -2.267034e-08
}
