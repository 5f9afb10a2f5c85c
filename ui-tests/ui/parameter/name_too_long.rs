use minitensor::prelude::*;

/// Doubles.
#[custom_op(name = "long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_")]
pub fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
