use minitensor::prelude::*;

/// Doubles.
#[custom_op]
pub fn double(x: impl Float) -> f64 {
    x + x
}

fn main() {}
