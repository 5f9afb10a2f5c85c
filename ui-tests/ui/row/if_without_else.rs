use minitensor::prelude::*;

/// Only where it is positive.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn part<R: Row>(x: R) -> R {
    let mut y = x;
    if x > x.mean() {
        y = x - 1.0;
    }
    y
}

fn main() {}
