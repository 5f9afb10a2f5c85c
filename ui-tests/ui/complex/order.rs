use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(z: Complex<T>, w: Complex<T>) -> T {
    if z < w { 0 } else { z.re() }
}

fn main() {}
