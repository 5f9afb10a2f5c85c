use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> [.., n], backward = none)]
pub fn op<T: Float>(x: &[T], out: &mut [T]) {
    let mut y = x.to_vec();
    y.sort();
    out.copy_from_slice(&y);
}

fn main() {}
