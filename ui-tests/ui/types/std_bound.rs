use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Copy + std::ops::Add>(x: T) -> T {
    x
}

fn main() {}
