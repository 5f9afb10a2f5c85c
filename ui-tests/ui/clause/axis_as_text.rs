use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> [.., n], axis = "last")]
pub fn op<R: Row>(x: R) -> R {
    x
}

fn main() {}
