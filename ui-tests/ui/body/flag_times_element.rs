use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, flag: bool) -> T {
    x * flag
}

fn main() {}
