use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn op<R: Row>(x: Vec<R>) -> R {
    x.max()
}

fn main() {}
