use minitensor::prelude::*;

/// Limits.
#[custom_op]
pub fn limit<T: Float>(x: T, y: Option<T>) -> T {
    if x > 1.0 { y? } else { x }
}

fn main() {}
