use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> (e: [..], m: [..]))]
pub fn op<R: Row>(x: R) -> (R, R) {
    let m = x.max();
    let e = (x - m).exp();
    (e, m)
}

fn main() {}
