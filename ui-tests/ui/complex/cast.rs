use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(z: Complex<T>) -> T {
    z as f64
}

fn main() {}
