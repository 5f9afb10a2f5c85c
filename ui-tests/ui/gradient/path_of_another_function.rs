use minitensor::prelude::*;

fn twice(x: f64) -> f64 {
    2.0 * x
}

/// An op.
#[custom_op(backward = twice)]
pub fn op<T: Float>(x: T) -> T {
    x * 2.0
}

fn main() {}
