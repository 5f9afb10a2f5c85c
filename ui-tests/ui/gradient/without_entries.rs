use minitensor::prelude::*;

/// An op.
#[custom_op(backward = |d| d * 2.0)]
pub fn op<T: Float>(x: T) -> T {
    x * 2.0
}

fn main() {}
