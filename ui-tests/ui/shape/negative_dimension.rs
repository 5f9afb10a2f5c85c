use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., -1]) -> [.., n])]
pub fn op<R: Row>(x: R) -> R {
    x
}

fn main() {}
