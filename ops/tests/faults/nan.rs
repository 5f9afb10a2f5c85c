//! NaN that an op loses.

use minitensor::prelude::*;
use minitensor::testing::opcheck;

/// The positive part of the distance to the mean. NaN is not greater than 0.
#[custom_op(name = "faulty::lossy_rows", shape = (x: [.., n]) -> [.., n])]
pub fn lossy_rows<R: Row>(x: R) -> R {
    let m = x - x.mean();
    if m > 0.0 { m } else { 0.0 }
}

/// The sum of the positive elements, plus the first element. Only a NaN in another element is lost.
#[custom_op(name = "faulty::lossy_tail", shape = (x: [.., n]) -> [..] where n > 0)]
pub fn lossy_tail<R: Row>(x: R) -> R {
    let positive = if x > 0.0 { x } else { 0.0 };
    let first = if x.position() == 0.0 { x } else { 0.0 };
    positive.sum() + first.sum()
}

/// The positive part of the distance to a number for each row. A NaN in this number is lost.
#[custom_op(name = "faulty::lossy_number", shape = (x: [.., n], least: [..]) -> [.., n])]
pub fn lossy_number<R: Row>(x: R, least: R) -> R {
    if x > least { x - least } else { x * 0.5 }
}

/// Elements divided by the largest. If that is NaN, it is not greater than 0.
#[custom_op(name = "faulty::lossy_scale", shape = (x: [.., n]) -> [.., n] where n > 0)]
pub fn lossy_scale<R: Row>(x: R) -> R {
    let largest = x.max();
    if largest > 0.0 { x / largest } else { 0.0 }
}

/// One of two rows.
#[custom_op(name = "correct::row_choice", shape = (x: [.., n], y: [.., n]) -> [.., n])]
pub fn row_choice<R: Row>(x: R, y: R) -> R {
    if x.sum() > y.sum() { x } else { y }
}

/// As `lossy_rows`, but NaN is not less than 0.
#[custom_op(name = "correct::positive_rows", shape = (x: [.., n]) -> [.., n])]
pub fn positive_rows<R: Row>(x: R) -> R {
    let m = x - x.mean();
    if m < 0.0 { 0.0 } else { m }
}

/// The mean of the elements that are not NaN.
#[custom_op(name = "correct::nan_mean", shape = (x: [.., n]) -> [..])]
pub fn nan_mean<R: Row>(x: R) -> R {
    let is_missing = x.isnan();
    let given = if is_missing { 0.0 } else { x };
    let count = if is_missing { R::zero() } else { R::one() };
    given.sum() / count.sum().maximum(1.0)
}

/// NaN replaced by a number.
#[custom_op(name = "correct::nan_to_number")]
pub fn nan_to_number<T: Float>(x: T, #[default = 0.0] number: f64) -> T {
    if x.isnan() { number } else { x }
}

/// The middle element in ascending order. Sorting moves NaN to the end.
#[custom_op(name = "correct::middle", shape = (x: [.., n]) -> [..] where n > 2)]
pub fn middle<R: Row>(x: R) -> R {
    let sorted = x.sort();
    let middle = if x.position() == 1.0 { sorted } else { 0.0 };
    middle.sum()
}

/// Elements are chosen by another row, which enters no result.
#[custom_op(name = "correct::gated", shape = (x: [.., n], gate: [.., n]) -> [.., n])]
pub fn gated<R: Row>(x: R, gate: R) -> R {
    if gate > gate.mean() { x } else { -x }
}

#[test]
fn fault_28_a_nan_that_is_lost_in_a_row() {
    for (op, words) in [
        (lossy_rows::op(), "a NaN in 'x' does not propagate"),
        (lossy_tail::op(), "a NaN in 'x', element 1, does not propagate"),
        (lossy_number::op(), "a NaN in 'least' does not propagate"),
        (lossy_scale::op(), "a NaN in 'x' does not propagate"),
    ] {
        let report = opcheck(&op, &[]);
        let [finding] = &report.findings[..] else { panic!("expected one finding: {report}") };
        assert!(finding.check == "special values" && finding.message.contains(words), "{report}");
        assert!(finding.message.contains("isnan"), "{report}");
    }
    for op in [positive_rows::op(), nan_mean::op(), nan_to_number::op(), middle::op(), gated::op(), row_choice::op()] {
        let report = opcheck(&op, &[]);
        assert!(report.findings.is_empty(), "{report}");
    }
}
