use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(z: Complex<T>, all: Vec<Complex<T>>) -> Complex<T> {
    z
}

fn main() {}
