use minitensor::prelude::*;

#[op_fn]
fn total<R: Row>(x: R) -> R {
    x.sum()
}

/// An op.
#[custom_op(shape = (x: [.., n]) -> [.., n], backward = none)]
pub fn op<T: Float>(x: &[T], out: &mut [T]) {
    out[0] = total(x[0]);
}

fn main() {}
