//! Derivatives that do not exist, which is not a fault.

use minitensor::prelude::*;
use minitensor::testing::opcheck;

/// The square root, with a saved number for its gradient.
#[custom_op(
    name = "correct::saved_root",
    shape = (x: [..]) -> (out: [..], [save] slope: [..]),
    backward = |d| { x: d * slope }
)]
pub fn saved_root<T: Float>(x: &T, out: &mut T, slope: &mut T) {
    *out = x.sqrt();
    *slope = 0.5 / *out;
}

/// The square root, with a wrong saved number for its gradient.
#[custom_op(
    name = "faulty::saved_root",
    shape = (x: [..]) -> (out: [..], [save] slope: [..]),
    backward = |d| { x: d * slope }
)]
pub fn wrong_saved_root<T: Float>(x: &T, out: &mut T, slope: &mut T) {
    *out = x.sqrt();
    *slope = 2.0 / *out;
}

/// `exp(x)`, by a series. The program of the third derivative is too long.
#[custom_op(name = "correct::long_series")]
pub fn long_series<T: Float>(x: T) -> T {
    let mut term: T = 1.0;
    let mut sum = term;
    for n in 1..300 {
        term *= x / n;
        sum += term;
        if term.abs() < 1e-16 * sum.abs() {
            break;
        }
    }
    sum
}

#[test]
fn a_third_derivative_may_have_too_long_a_program() {
    let report = opcheck(&long_series::op(), &[]);
    assert!(report.samples > 0 && report.findings.is_empty(), "{report}");
}

#[test]
fn a_saved_output_has_no_second_derivative() {
    let report = opcheck(&saved_root::op(), &[]);
    assert!(report.samples > 0 && report.findings.is_empty(), "{report}");
    let report = opcheck(&wrong_saved_root::op(), &[]);
    assert!(report.findings.iter().any(|f| f.check == "gradient"), "{report}");
}
