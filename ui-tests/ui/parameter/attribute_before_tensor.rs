use minitensor::prelude::*;

/// A line.
#[custom_op]
pub fn line<T: Float>(slope: f64, x: T) -> T {
    slope * x
}

fn main() {}
