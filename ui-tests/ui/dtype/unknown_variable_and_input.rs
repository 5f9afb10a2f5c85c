use minitensor::prelude::*;

/// Doubles.
#[custom_op(dtype = (y: T) -> T where U: f32)]
pub fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
