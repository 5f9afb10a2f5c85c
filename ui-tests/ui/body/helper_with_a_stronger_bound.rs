use minitensor::prelude::*;

#[op_fn]
fn half<T: Float>(x: T) -> T {
    0.5 * x
}

/// An op.
#[custom_op]
pub fn op<T: Real>(x: T) -> T {
    half(x)
}

fn main() {}
