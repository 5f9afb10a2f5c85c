use minitensor::prelude::*;

/// Doubles.
#[custom_op(since = 1 inplace)]
pub fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
