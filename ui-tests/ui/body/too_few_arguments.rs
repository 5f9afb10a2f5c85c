use minitensor::prelude::*;

#[op_fn]
fn scaled<T: Float>(x: T, by: f64) -> T {
    x * by
}

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    scaled(x)
}

fn main() {}
