use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn op<R: Row>(x: R, y: R) -> R {
    x + y
}

fn main() {}
