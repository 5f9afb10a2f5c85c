use minitensor::prelude::*;

/// The differences of neighbours.
#[custom_op(shape = (x: [.., n], y: [.., n]) -> [.., n])]
pub fn steps<T: Float>(x: &[T], y: &mut [T]) {
    y.copy_from_slice(x);
}

fn main() {}
