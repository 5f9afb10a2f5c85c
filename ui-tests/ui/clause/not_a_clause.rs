use minitensor::prelude::*;

/// Doubles.
#[custom_op("twice")]
pub fn double<T: Float>(x: T) -> T {
    2.0 * x
}

fn main() {}
