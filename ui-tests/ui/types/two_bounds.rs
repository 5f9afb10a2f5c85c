use minitensor::prelude::*;

/// Doubles.
#[custom_op]
pub fn double<T: Float + Num>(x: T) -> T {
    x + x
}

fn main() {}
