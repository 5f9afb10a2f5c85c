use minitensor::prelude::*;

/// An op.
#[custom_op(dtype = "float32")]
pub fn op<T: Float>(x: T) -> T {
    x
}

fn main() {}
