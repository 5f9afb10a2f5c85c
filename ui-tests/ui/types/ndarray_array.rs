use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., m, n]) -> [.., n])]
pub fn op<T: Float>(x: &ndarray::Array2<T>, out: &mut [T]) {
    out.assign(&x);
}

fn main() {}
