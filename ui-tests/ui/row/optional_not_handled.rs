use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n], weight: [n]) -> [.., n])]
pub fn op<R: Row>(x: R, weight: Option<R>) -> R {
    x * weight
}

fn main() {}
