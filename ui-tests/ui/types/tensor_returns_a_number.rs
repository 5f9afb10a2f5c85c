use minitensor::prelude::*;

/// The first element.
#[custom_op]
pub fn first(x: &Tensor) -> f64 {
    0.0
}

fn main() {}
