use minitensor::prelude::*;

/// Doubles.
#[custom_op(axis = -1)]
pub fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
