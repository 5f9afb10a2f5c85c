use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: [T; 3]) -> T {
    x[0]
}

fn main() {}
