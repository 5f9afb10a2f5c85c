use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> Option<T> {
    Some(x)
}

fn main() {}
