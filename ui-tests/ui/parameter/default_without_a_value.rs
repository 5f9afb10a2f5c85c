use minitensor::prelude::*;

/// A line.
#[custom_op]
pub fn line<T: Float>(x: T, #[default] slope: f64) -> T {
    slope * x
}

fn main() {}
