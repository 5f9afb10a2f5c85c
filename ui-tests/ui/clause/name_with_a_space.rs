use minitensor::prelude::*;

/// An op.
#[custom_op(name = "my op")]
pub fn op<T: Float>(x: T) -> T {
    x
}

fn main() {}
