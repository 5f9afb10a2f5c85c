use minitensor::prelude::*;

/// A line.
#[custom_op]
pub fn line<T: Float>(x: T, α: f64) -> T {
    α * x
}

fn main() {}
