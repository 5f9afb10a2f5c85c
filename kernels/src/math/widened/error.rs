//! The error function.

use std::f64::consts::LOG2_E;

use super::exp::exp2;
use crate::math::bits::{clamp, select};
use crate::math::polynomial::polynomial;

/// e^x² erfc(x) (1 + x) by (x − 2) / (x + 2) over 0 ≤ x ≤ 11.
const ERFC: [f64; 13] = [
    0.7661870291283742,
    -0.25997483740641547,
    0.037813873828817776,
    0.04253636499560576,
    -0.02524305435977037,
    -0.0005183341467798941,
    0.003933950115116613,
    0.0001436902440469034,
    -0.0006933523221355642,
    -0.00013225965210788873,
    9.585041482535247e-05,
    4.2362234676828804e-05,
    2.6892053553203276e-06,
];

/// erfc x for x ≥ 0; e^x² erfc(x) (1 + x) changes little (Shepherd and Laframboise, 1981).
#[inline(always)]
fn tail(x: f64) -> f64 {
    let inverse = 1.0 / ((x + 1.0) * (x + 2.0));
    let t = (x - 2.0) * (x + 1.0) * inverse;
    exp2(x * x * -LOG2_E) * polynomial(t, &ERFC) * ((x + 2.0) * inverse)
}

#[inline(always)]
pub fn erfc(x: f64) -> f64 {
    let right = tail(clamp(x.abs(), 0.0, 11.0));
    select(x < 0.0, 2.0 - right, right)
}
