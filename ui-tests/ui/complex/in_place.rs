use minitensor::prelude::*;

/// An op.
#[custom_op(inplace)]
pub fn op<T: Float>(z: Complex<T>) -> Complex<T> {
    z
}

fn main() {}
