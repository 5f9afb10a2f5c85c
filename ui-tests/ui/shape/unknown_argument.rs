use minitensor::prelude::*;

/// Adds rows.
#[custom_op(shape = (x: [.., n], z: [.., n]) -> [.., n], backward = none)]
pub fn add_rows<T: Num>(x: &[T], y: &[T], out: &mut [T]) {
    out[0] = x[0] + y[0];
}

fn main() {}
