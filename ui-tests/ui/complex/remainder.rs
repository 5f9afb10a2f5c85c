use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(z: Complex<T>) -> Complex<T> {
    z % 2.0
}

fn main() {}
