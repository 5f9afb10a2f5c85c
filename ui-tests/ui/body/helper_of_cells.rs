use minitensor::prelude::*;

#[op_fn]
fn first<T: Float>(x: &[T]) -> T {
    x[0] * 2.0
}

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    first(x)
}

fn main() {}
