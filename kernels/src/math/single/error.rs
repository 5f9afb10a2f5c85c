//! The error function.

use super::bits::{SINKING, power_of_two, sunk};
use super::exp::{mantissa_of_square, mantissa_of_sum};
use super::polynomial::{long_polynomial, polynomial};
use crate::math::bits::{least, select};
use crate::math::error::errors;

/// erf(x) / x − 1 by x² over |x| ≤ 0.9.
const ERF: [f32; 7] = [0.12837917, -0.37612635, 0.11283715, -0.026860507, 0.0052038566, -0.0008175608, 8.51297e-05];

/// −ln(erfc x) / x − 2 by x − 1 over 0.9 ≤ x ≤ 4.
const ERF_TAIL: [f32; 6] = [-0.15039447, 0.7893619, 0.053742297, -0.012170816, 0.0021456159, -0.00021412711];

/// (1 / (e^x² erfc x) − 1) / x − 197/128 for 0 ≤ x ≤ 10.2, as a quotient; beyond, results are 0.
const ERFC_OVER: [f32; 5] = [-0.410683, -0.23435712, -0.029389815, 0.020724248, 0.0075800284];
const ERFC_UNDER: [f32; 5] = [1.0, 1.2359645, 0.72887546, 0.22784975, 0.03248081];

/// (1 / (2 e^½x² (1 − Φ(x))) − 1) / x − 35/32 for 0 ≤ x ≤ 14.5, as a quotient; beyond, results are 0.
const NORMAL_OVER: [f32; 5] = [-0.29586518, -0.122129664, -0.012433817, 0.0047414275, 0.0012992409];
const NORMAL_UNDER: [f32; 5] = [1.0, 0.8745394, 0.36487627, 0.08070735, 0.008143213];

errors! {
    f32, u32, long_polynomial, tail polynomial, mantissa_of_sum::<127>, mantissa_of_square, power_of_two,
    erf far 0.9 end 4.0, erfc end 10.2, normal end 14.5 top rest -2.267034e-08
}
