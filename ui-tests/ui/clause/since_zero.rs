use minitensor::prelude::*;

/// An op.
#[custom_op(since = 0)]
pub fn op<T: Float>(x: T) -> T {
    x
}

fn main() {}
