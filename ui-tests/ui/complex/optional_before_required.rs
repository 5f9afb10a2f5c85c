use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(z: Option<Complex<T>>, w: Complex<T>) -> Complex<T> {
    w
}

fn main() {}
