//! Sizes for which an op panics.

use minitensor::prelude::*;
use minitensor::testing::opcheck;

/// The second element.
#[custom_op(name = "faulty::second", shape = (x: [.., n]) -> [..])]
pub fn second<T: Float>(x: &[T], out: &mut T) {
    *out = x[1];
}

/// The second element, for rows that have one.
#[custom_op(name = "correct::second", shape = (x: [.., n]) -> [..] where n > 1)]
pub fn second_of_many<T: Float>(x: &[T], out: &mut T) {
    *out = x[1];
}

/// The last row.
#[custom_op(name = "faulty::last_row", shape = (x: [.., m, n]) -> [.., n], backward = none)]
pub fn last_row<T: Float>(x: ArrayView2<T>, out: &mut [T]) {
    let last = x.nrows() - 1;
    out.iter_mut().enumerate().for_each(|(k, y)| *y = x[(last, k)]);
}

#[test]
fn fault_29_a_panic_for_a_small_size() {
    for (op, sizes, condition) in [(second::op(), "n = 1", "n > 1"), (last_row::op(), "m = 0, n = 3", "m > 0")] {
        let report = opcheck(&op, &[]);
        let [finding] = &report.findings[..] else { panic!("expected one finding: {report}") };
        let is_named = finding.message.contains(sizes) && finding.message.contains(&format!("`where {condition}`"));
        assert!(finding.check == "sizes" && is_named, "{report}");
    }
    let report = opcheck(&second_of_many::op(), &[]);
    assert!(report.findings.is_empty(), "{report}");
}
