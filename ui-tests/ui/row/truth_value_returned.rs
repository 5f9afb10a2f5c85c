use minitensor::prelude::*;

/// Which elements are above the mean.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn above<R: Row>(x: R) -> R::Mask {
    x > x.mean()
}

fn main() {}
