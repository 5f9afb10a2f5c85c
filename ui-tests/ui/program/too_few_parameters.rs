use minitensor::prelude::*;

fn of_row<R: Row>(x: R) -> R {
    x
}

/// An op.
#[custom_op(shape = (x: [.., n]) -> [.., n], program = of_row)]
pub fn op<T: Float>(x: &[T], out: &mut [T], scale: f64) {
    out[0] = x[0] * scale;
}

fn main() {}
