use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> [.., n + 1])]
pub fn op<R: Row>(x: R) -> R {
    x
}

fn main() {}
