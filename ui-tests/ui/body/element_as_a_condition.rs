use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    if x { 1.0 } else { 0.0 }
}

fn main() {}
