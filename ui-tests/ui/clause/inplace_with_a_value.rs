use minitensor::prelude::*;

/// An op.
#[custom_op(inplace = true)]
pub fn op<T: Float>(x: T) -> T {
    x
}

fn main() {}
