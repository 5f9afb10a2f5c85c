use minitensor::prelude::*;

/// A line.
#[custom_op]
pub fn line<T: Float>(x: T, #[default = 1.0] slope: T) -> T {
    slope * x
}

fn main() {}
