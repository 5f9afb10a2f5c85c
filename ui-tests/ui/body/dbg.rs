use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    dbg!(x) * 2.0
}

fn main() {}
