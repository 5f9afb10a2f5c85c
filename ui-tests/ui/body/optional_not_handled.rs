use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, scale: Option<f64>) -> T {
    x * scale
}

fn main() {}
