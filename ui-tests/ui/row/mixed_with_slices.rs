use minitensor::prelude::*;

/// A row and a slice.
#[custom_op(shape = (x: [.., n], y: [.., n]) -> [.., n])]
pub fn both<R: Row>(x: R, y: &[R]) -> R {
    x
}

fn main() {}
