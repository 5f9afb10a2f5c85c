use minitensor::prelude::*;

/// Appends the sum of the row, in double precision.
#[custom_op(shape = (x: [.., n], start: []) -> (out: [.., n], sum: [..]))]
pub fn with_sum<T: Float, U: Float>(x: &[T], start: &U, out: &mut [T], sum: &mut f64) {
    out.copy_from_slice(x);
    *sum = if *start > U::zero() { 1.0 } else { 0.0 };
}

fn main() {}
