use minitensor::prelude::*;

/// An op.
#[custom_op(where b > 0.0 || b < -1.0)]
pub fn op<T: Float>(x: T, b: f64) -> T {
    x
}

fn main() {}
