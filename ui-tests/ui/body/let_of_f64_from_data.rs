use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    let y: f64 = x * 2.0;
    x
}

fn main() {}
