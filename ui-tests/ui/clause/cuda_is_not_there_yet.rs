use minitensor::prelude::*;

/// Doubles.
#[custom_op(cuda = "double.cu", tune = [1, 2])]
pub fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
