use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, y: T) -> T {
    x.max(y, 0.0)
}

fn main() {}
