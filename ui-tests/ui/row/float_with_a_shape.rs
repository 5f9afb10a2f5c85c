use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn op<T: Float>(x: T) -> T {
    x / x.sum()
}

fn main() {}
