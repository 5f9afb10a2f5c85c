use minitensor::prelude::*;

/// Smooths every row.
#[custom_op(shape = (x: [.., n]) -> [.., alpha], backward = none)]
pub fn smooth<T: Float>(x: &[T], alpha: f64, out: &mut [T]) {
    out[0] = x[0];
}

fn main() {}
