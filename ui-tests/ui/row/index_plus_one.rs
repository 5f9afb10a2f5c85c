use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n], at: [..]) -> [..])]
pub fn op<R: Row>(x: R, at: R::Index) -> R {
    x.at(at + 1)
}

fn main() {}
