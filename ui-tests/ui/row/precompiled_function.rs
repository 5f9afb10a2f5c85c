use minitensor::prelude::*;

/// The difference from the element before.
#[custom_op(shape = (x: [.., n]) -> [.., n], precompiled)]
pub fn difference<R: Row>(x: R) -> R {
    x - x.shift(1)
}

/// Whether an element exceeds the mean.
#[custom_op(shape = (x: [.., n]) -> [.., n], precompiled)]
pub fn exceeds<R: Row>(x: R) -> R::Mask {
    x > x.mean()
}

fn main() {}
