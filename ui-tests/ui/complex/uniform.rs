use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<T: Float>(z: Complex<T>, #[uniform] u: T) -> Complex<T> {
    u * z
}

fn main() {}
