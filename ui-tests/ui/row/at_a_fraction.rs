use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn op<R: Row>(x: R) -> R {
    x.at(0.5)
}

fn main() {}
