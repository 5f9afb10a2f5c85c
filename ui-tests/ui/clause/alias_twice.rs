use minitensor::prelude::*;

/// An op.
#[custom_op(alias = ["a", "a"])]
pub fn op<T: Float>(x: T) -> T {
    x
}

fn main() {}
