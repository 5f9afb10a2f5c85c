use minitensor::prelude::*;

/// Doubles.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn double<T: Float>(x: T) -> T {
    x + x
}

fn main() {}
