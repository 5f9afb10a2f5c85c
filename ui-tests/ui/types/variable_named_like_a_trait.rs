use minitensor::prelude::*;

/// Not in order.
#[custom_op]
pub fn squared<Float: Float>(x: Float) -> Float {
    x * x
}

fn main() {}
