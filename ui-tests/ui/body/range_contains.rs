use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    if (0.0..1.0).contains(&x) { x } else { 0.0 }
}

fn main() {}
