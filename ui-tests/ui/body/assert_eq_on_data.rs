use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, y: T) -> T {
    assert_eq!(x, y);
    x
}

fn main() {}
