use minitensor::prelude::*;

/// Limits.
#[custom_op]
pub fn limit<T: Float>(x: T) -> T {
    if x > 1.0 { return 1.0; } else { x }
}

fn main() {}
