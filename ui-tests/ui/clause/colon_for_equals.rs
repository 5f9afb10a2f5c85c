use minitensor::prelude::*;

/// An op.
#[custom_op(name: "double")]
pub fn op<T: Float>(x: T) -> T {
    x
}

fn main() {}
