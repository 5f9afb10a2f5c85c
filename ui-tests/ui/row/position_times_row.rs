use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n], at: [..]) -> [.., n])]
pub fn op<R: Row>(x: R, at: R::Index) -> R {
    x * at
}

fn main() {}
