use minitensor::prelude::*;

/// Whether an element exceeds the mean.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn exceeds<R: Row>(x: R) -> bool {
    x > x.mean()
}

fn main() {}
