use minitensor::prelude::*;

/// An op.
#[custom_op(where b)]
pub fn op<T: Float>(x: T, b: f64) -> T {
    x
}

fn main() {}
