use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float, U: Float>(z: Complex<T>, w: Complex<U>) -> Complex<T> {
    z
}

fn main() {}
