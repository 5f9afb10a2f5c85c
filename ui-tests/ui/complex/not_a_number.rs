use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(z: Complex<T>) -> Complex<T> {
    if z.re() > 0 { z } else { Complex::nan() }
}

fn main() {}
