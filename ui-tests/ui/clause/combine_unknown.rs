use minitensor::prelude::*;

/// The sum of absolute values.
#[custom_op(shape = (x: [.., n]) -> [..], axis = None, combine = adds)]
pub fn absolute_sum<R: Row>(x: R) -> R {
    x.abs().sum()
}

fn main() {}
