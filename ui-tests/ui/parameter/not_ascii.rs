use minitensor::prelude::*;

/// A line.
#[custom_op]
pub fn line<T: Float>(x: T, größe: f64) -> T {
    größe * x
}

fn main() {}
