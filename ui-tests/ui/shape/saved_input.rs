use minitensor::prelude::*;

/// Reverses every row.
#[custom_op(shape = ([save] x: [.., n]) -> [.., n], backward = none)]
pub fn reverse<T: Num>(x: &[T], out: &mut [T]) {
    out[0] = x[0];
}

fn main() {}
