use minitensor::prelude::*;

/// A line.
#[custom_op(alias = 3)]
pub fn line<T: Float>(x: T, slope: f64) -> T {
    2.0 * x + slope
}

pub fn other() -> f64 {
    line(1.0, 2.0)
}

fn main() {}
