use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, mode: &str) -> T {
    x * mode
}

fn main() {}
