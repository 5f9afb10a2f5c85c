use minitensor::prelude::*;

/// Halves until it is small.
#[custom_op]
pub fn small<T: Float>(x: T) -> T {
    let mut y = x;
    while y > 1.0 {
        y = y / 2.0;
    }
    y
}

fn main() {}
