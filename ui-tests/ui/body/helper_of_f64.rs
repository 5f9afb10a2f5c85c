use minitensor::prelude::*;

fn half(x: f64) -> f64 {
    0.5 * x
}

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    let _ = half(x);
    x
}

fn main() {}
