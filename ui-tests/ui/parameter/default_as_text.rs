use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, #[default = "0.5"] b: f64) -> T {
    x
}

fn main() {}
