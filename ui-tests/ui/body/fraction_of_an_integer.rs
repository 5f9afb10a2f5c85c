use minitensor::prelude::*;

/// Halves.
#[custom_op]
pub fn half<T: Real>(x: T) -> T {
    0.5 * x
}

fn main() {}
