use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, #[postion(-1)] at: T, #[defaults = 2.0] k: f64) -> T {
    x * at * k
}

fn main() {}
