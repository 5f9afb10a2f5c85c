use minitensor::prelude::*;

/// Doubles.
#[custom_op]
pub fn double<T: Float>(x: T) -> T {
    let two: f32 = 2.0;
    x * two
}

fn main() {}
