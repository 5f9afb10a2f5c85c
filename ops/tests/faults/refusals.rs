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

#[test]
fn a_saved_output_has_no_second_derivative() {
    let report = opcheck(&saved_root::op(), &[]);
    assert!(report.samples > 0 && report.findings.is_empty(), "{report}");
    let report = opcheck(&wrong_saved_root::op(), &[]);
    assert!(report.findings.iter().any(|f| f.check == "gradient"), "{report}");
}
