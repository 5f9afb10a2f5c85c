use minitensor::prelude::*;

fn of_row<T: Float>(x: &[T]) -> T {
    x[0]
}

/// An op.
#[custom_op(shape = (x: [.., n]) -> [.., n], program = of_row)]
pub fn op<T: Float>(x: &[T], out: &mut [T]) {
    out[0] = x[0];
}

fn main() {}
