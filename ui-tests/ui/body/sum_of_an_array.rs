use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, y: T) -> T {
    [x, y].iter().sum()
}

fn main() {}
