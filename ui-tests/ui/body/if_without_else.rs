use minitensor::prelude::*;

/// Limits.
#[custom_op]
pub fn limit<T: Float>(x: T) -> T {
    if x > 1.0 {
        1.0
    }
    x
}

fn main() {}
