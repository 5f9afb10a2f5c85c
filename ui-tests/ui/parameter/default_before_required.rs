use minitensor::prelude::*;

/// A line.
#[custom_op]
pub fn line<T: Float>(x: T, #[default = 1.0] slope: f64, shift: f64) -> T {
    slope * x + shift
}

fn main() {}
