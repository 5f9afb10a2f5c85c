use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn op<R: Row>(x: R) -> R {
    if (x > 0.0).any() { x } else { 0.0 }
}

fn main() {}
