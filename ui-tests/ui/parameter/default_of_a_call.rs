use minitensor::prelude::*;

fn width() -> f64 {
    1.0
}

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, #[default = width()] b: f64) -> T {
    x
}

fn main() {}
