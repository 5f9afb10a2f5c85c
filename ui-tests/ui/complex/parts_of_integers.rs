use minitensor::prelude::*;

/// An op.
#[custom_op]
pub fn op<U: Int>(z: Complex<U>) -> U {
    z.re()
}

fn main() {}
