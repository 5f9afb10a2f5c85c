use minitensor::prelude::*;

/// Sorts every row.
#[custom_op(shape = (x: [.., n]) -> [.., n], backward = none)]
pub fn sort<T: Real>(x: &mut [T], out: &mut [T]) {
    out[0] = x[0];
}

fn main() {}
