use minitensor::prelude::*;

/// Doubles.
#[custom_op(backward = "auto")]
pub fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
