use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, y: T) -> T {
    std::cmp::max(x, y)
}

fn main() {}
