use minitensor::prelude::*;

/// A row and a slice.
#[custom_op(shape = (x: [.., n], y: [.., n]) -> [.., n])]
pub fn both<R: Row, T: Float>(x: R, y: &[T]) -> R {
    x
}

fn main() {}
