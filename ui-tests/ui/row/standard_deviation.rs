use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn op<R: Row>(x: R) -> R {
    (x - x.mean()) / x.std()
}

fn main() {}
