use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float, U: Int>(x: T, y: U) -> T {
    x + y
}

fn main() {}
