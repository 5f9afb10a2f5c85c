use minitensor::prelude::*;

/// Doubles.
#[custom_op]
pub fn double(x: impl Float) -> impl Float {
    x + x
}

fn main() {}
