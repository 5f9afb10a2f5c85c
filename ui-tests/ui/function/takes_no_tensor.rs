use minitensor::prelude::*;

/// A number.
#[custom_op]
pub fn constant(value: f64) -> f64 {
    value
}

fn main() {}
