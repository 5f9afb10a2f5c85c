use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n], i: [..]) -> [..])]
pub fn op<R: Row>(x: R, i: usize) -> R {
    x.sum() * i
}

fn main() {}
