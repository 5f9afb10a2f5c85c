use minitensor::prelude::*;

/// The ranks of integers.
#[custom_op(shape = (x: [.., n]) -> [..], precompiled)]
pub fn total<R: IntRow>(x: R) -> R {
    x.sum()
}

fn main() {}
