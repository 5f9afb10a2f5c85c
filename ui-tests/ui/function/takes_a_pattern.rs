use minitensor::prelude::*;

/// Adds.
#[custom_op]
pub fn add<T: Float>((x, y): (T, T)) -> T {
    x + y
}

fn main() {}
