use minitensor::prelude::*;

/// Doubles.
#[custom_op(dtype = (x: T) -> T where T: f31 | Float)]
pub fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
