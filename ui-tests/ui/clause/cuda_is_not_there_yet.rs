use minitensor::prelude::*;

/// Doubles.
#[custom_op(cuda = "double.cu")]
pub fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
