use minitensor::prelude::*;

/// An op.
#[custom_op(backward = |d| { x: d })]
pub fn op<T: Float>(z: Complex<T>, x: T) -> T {
    z.re() + x
}

fn main() {}
