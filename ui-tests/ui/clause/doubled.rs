use minitensor::prelude::*;

/// Doubles.
#[custom_op(since = 1, inplace, since = 2)]
pub fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
