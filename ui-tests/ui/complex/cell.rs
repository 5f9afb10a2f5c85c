use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (z: [.., n]) -> [..])]
pub fn op<T: Float>(z: &[Complex<T>], out: &mut T) {
    *out = z[0].re();
}

fn main() {}
