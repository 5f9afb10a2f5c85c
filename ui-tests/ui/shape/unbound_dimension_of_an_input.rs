use minitensor::prelude::*;

/// A test.
#[custom_op(shape = (r: [.., n + 1]) -> [.., n])]
pub fn levinson<T: Float>(r: &[T], out: &mut [T]) {
    out[0] = r[1] / r[0];
}

fn main() {}
