use minitensor::prelude::*;

/// Doubles.
#[custom_op]
pub unsafe fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
