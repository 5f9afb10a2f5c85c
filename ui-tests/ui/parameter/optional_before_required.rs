use minitensor::prelude::*;

/// A line.
#[custom_op]
pub fn line<T: Float>(x: T, shift: Option<T>, slope: T) -> T {
    slope * x + shift.unwrap_or(0.0)
}

fn main() {}
