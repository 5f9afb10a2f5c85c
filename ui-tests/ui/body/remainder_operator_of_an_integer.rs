use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Int>(x: T, y: T) -> T {
    x % y
}

fn main() {}
