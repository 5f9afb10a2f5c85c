use minitensor::prelude::*;

/// The square.
#[custom_op]
pub fn square<T: Float>(x: T) -> f64 {
    x * x
}

fn main() {}
