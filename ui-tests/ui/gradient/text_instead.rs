use minitensor::prelude::*;

/// An op.
#[custom_op(backward = "none")]
pub fn op<T: Float>(x: T) -> T {
    x * 2.0
}

fn main() {}
