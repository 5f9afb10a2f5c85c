use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(z: Complex<T>, w: Complex<f32>) -> T {
    z.re()
}

fn main() {}
