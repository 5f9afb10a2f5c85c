use minitensor::prelude::*;

#[op_fn]
fn center<R: Row>(x: R) -> R {
    x - x.mean()
}

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    center(x)
}

fn main() {}
