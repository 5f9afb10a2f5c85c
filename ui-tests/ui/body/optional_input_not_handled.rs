use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, y: Option<T>) -> T {
    x + y
}

fn main() {}
