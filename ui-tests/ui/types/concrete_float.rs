use minitensor::prelude::*;

/// Scales.
#[custom_op]
pub fn scale<T: Float>(x: T, by: f32) -> T {
    x * by
}

fn main() {}
