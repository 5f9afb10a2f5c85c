use minitensor::prelude::*;

/// Limits.
#[custom_op]
pub fn limit<T: Float>(x: T) -> T {
    let mut y = x;
    if x > 1.0 {
        y = 1.0;
    }
    y
}

fn main() {}
