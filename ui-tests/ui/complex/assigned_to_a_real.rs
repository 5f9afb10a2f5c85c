use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(z: Complex<T>, x: T) -> Complex<T> {
    let mut total = 0.0;
    for _ in 0..3 {
        total += z;
    }
    total
}

fn main() {}
