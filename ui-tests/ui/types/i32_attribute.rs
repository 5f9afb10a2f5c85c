use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, n: i32) -> T {
    x
}

fn main() {}
