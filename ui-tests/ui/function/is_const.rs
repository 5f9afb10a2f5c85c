use minitensor::prelude::*;

/// Doubles.
#[custom_op]
pub const fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
