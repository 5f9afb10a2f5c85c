use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    if let 0.0 = x { 1.0 } else { x }
}

fn main() {}
