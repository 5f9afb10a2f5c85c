use minitensor::prelude::*;

/// A test.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn shifted<T: Float>(x: &[T]) -> T {
    x[0] = 1.0;
    x[0] += x[1];
    x[0]
}

fn main() {}
