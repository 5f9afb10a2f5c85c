use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(z: Complex<T>, x: T) -> (T, Complex<T>) {
    (x * z, z)
}

fn main() {}
