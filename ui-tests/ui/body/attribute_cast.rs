use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, scale: f64) -> T {
    x * (scale as f32)
}

fn main() {}
