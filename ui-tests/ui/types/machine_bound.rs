use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Machine>(x: T) -> T {
    x
}

fn main() {}
