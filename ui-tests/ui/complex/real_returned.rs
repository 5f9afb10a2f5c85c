use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(z: Complex<T>) -> Complex<T> {
    z.abs()
}

fn main() {}
