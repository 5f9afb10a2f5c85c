//! Outputs that a body does not write.

use minitensor::prelude::*;
use minitensor::testing::Sample;

use super::{found, t};

/// Differences without the first one.
#[custom_op(name = "faults::differences", shape = (x: [.., n]) -> [.., n], backward = none)]
fn differences<T: Float>(x: &[T], out: &mut [T]) {
    for i in 1..x.len() {
        out[i] = x[i] - x[i - 1];
    }
}

/// Sums that begin with what the memory holds.
#[custom_op(name = "faults::sums", shape = (x: [.., n]) -> [.., n], backward = none)]
fn sums<T: Float>(x: &[T], out: &mut [T]) {
    for i in 0..x.len() {
        for v in &x[..=i] {
            out[i] += v;
        }
    }
}

#[test]
fn an_output_that_keeps_what_its_memory_held() {
    for op in [differences::op(), sums::op()] {
        let sample = Sample { inputs: vec![Some(t(&[0.5, 2.0, -1.0], &[3]))], attrs: vec![] };
        found(&op, sample, "outputs", "does not write all elements");
    }
}
