use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn op<R: Row>(x: R) -> R {
    let mut total = 0.0;
    for v in x {
        total += v;
    }
    total
}

fn main() {}
