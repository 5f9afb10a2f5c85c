use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n], y: [.., n]) -> [..], backward = none)]
pub fn op<T: Float>(x: ArrayView1<T>, y: ArrayView1<T>, out: &mut T) {
    *out = x.dot(&y);
}

fn main() {}
