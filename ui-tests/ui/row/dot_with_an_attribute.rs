use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn op<R: Row>(x: R, weights: &[f64]) -> R {
    x.dot(weights)
}

fn main() {}
