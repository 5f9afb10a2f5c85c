use minitensor::prelude::*;

/// An op.
#[custom_op(dtype = [f32, f64])]
pub fn op<T: Float>(x: T) -> T {
    x
}

fn main() {}
