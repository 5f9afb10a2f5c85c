use minitensor::prelude::*;

/// Reverses every row.
#[custom_op(shape = (x: [.., n]) -> [.., n], backward = none, inplace)]
pub fn reverse<T: Num>(x: &[T], out: &mut [T]) {
    x.iter().rev().zip(out).for_each(|(x, out)| *out = *x);
}

fn main() {}
