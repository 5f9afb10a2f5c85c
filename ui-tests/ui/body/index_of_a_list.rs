use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, list: &[f64]) -> T {
    x * list[x]
}

fn main() {}
