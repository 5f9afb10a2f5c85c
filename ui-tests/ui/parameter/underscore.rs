use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, _: f64) -> T {
    x
}

fn main() {}
