use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    if T::any(x > 0) { x } else { 0.0 }
}

fn main() {}
