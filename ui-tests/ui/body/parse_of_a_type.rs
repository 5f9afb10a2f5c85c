use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    f64::max(x, 0.0)
}

fn main() {}
