//! The error function.

use std::f64::consts::LOG2_E;

use super::exp::exp2;
use crate::math::bits::{clamp, select};
use crate::math::polynomial::polynomial;

/// erf(x) / x by x² over |x| ≤ 1.
const ERF: [f64; 8] = [
    1.128379167058099,
    -0.37612638435147205,
    0.11283781979462658,
    -0.026865400260807682,
    0.005220945844965951,
    -0.0008482832477022484,
    0.00011256960131717468,
    -9.64151725318562e-06,
];

/// e^x² erfc(x) (1 + x) by (x − 2) / (x + 2) over 1 ≤ x ≤ 4.
const ERF_TAIL: [f64; 7] = [
    0.7661870300736133,
    -0.2599748231762037,
    0.037813601231382374,
    0.04253521035255365,
    -0.025231308704744174,
    -0.0004950280642975494,
    0.003773694194266934,
];

/// The same over 0 ≤ x ≤ 11.
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

/// erfc x for x ≥ 0, where a table knows e^x² erfc(x) (1 + x), which changes little (Shepherd and Laframboise, 1981).
#[inline(always)]
fn tail<const N: usize>(x: f64, table: &[f64; N]) -> f64 {
    let inverse = 1.0 / ((x + 1.0) * (x + 2.0));
    let t = (x - 2.0) * (x + 1.0) * inverse;
    exp2(x * x * -LOG2_E) * polynomial(t, table) * ((x + 2.0) * inverse)
}

#[inline(always)]
pub fn erf(x: f64) -> f64 {
    let a = clamp(x.abs(), 0.0, 4.0);
    let near = x * polynomial(x * x, &ERF);
    select(a < 1.0, near, (1.0 - tail(a, &ERF_TAIL)).copysign(x))
}

#[inline(always)]
pub fn erfc(x: f64) -> f64 {
    let right = tail(clamp(x.abs(), 0.0, 11.0), &ERFC);
    select(x < 0.0, 2.0 - right, right)
}
