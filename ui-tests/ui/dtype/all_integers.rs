use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> [.., n], dtype = (x: i64) -> i64)]
pub fn op<R: Row>(x: R) -> R {
    x.cumsum()
}

fn main() {}
